#include "tests/fuzz/targets.h"

#include <filesystem>

#include "analysis/verdict/verdict.h"
#include "harness/base/file.h"
#include "harness/base/quantity.h"
#include "harness/reaper/protocol.h"
#include "harness/scenario/parse.h"
#include "harness/wire/checkpoint_format.h"
#include "harness/wire/event.h"
#include "harness/wire/job.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/json.h"
#include "harness/wire/ledger.h"
#include "harness/wire/scenario.h"
#include "harness/wire/zip_archive.h"

namespace shakedown::fuzz {
namespace {

namespace fs = std::filesystem;
using Seeds = std::vector<std::string>;

// An input that is understood has to come back as it was.
template <typename T>
void SameAgain(const Result<T>& read, Result<T> (*from_json)(const Json&)) {
  if (!read) return;
  const std::string once = DumpJson(ToJson(*read));
  const Result<T> again = from_json(*ParseJson(once));
  SHAKEDOWN_ASSERT(again.has_value());
  SHAKEDOWN_ASSERT(DumpJson(ToJson(*again)) == once);
}

template <typename T>
void FeedJson(std::string_view bytes, Result<T> (*from_json)(const Json&)) {
  if (const Result<Json> json = ParseJson(bytes)) SameAgain(from_json(*json), from_json);
}

// --- scenario files, plans, jobs
// ------------------------------------------------------------------

void Scenarios(std::string_view bytes) {
  const ParsedScenario parsed = ParseScenario(bytes, "fuzzed.yaml");
  SHAKEDOWN_ASSERT(parsed.scenario.has_value() == parsed.problems.empty());
}
Seeds ScenarioSeeds() {
  Seeds seeds;
  for (const auto& entry : fs::recursive_directory_iterator(SHAKEDOWN_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() == ".yaml") seeds.push_back(ReadFile(entry.path()).value());
  }
  return seeds;
}

void Settings(std::string_view bytes) {
  static const std::string kBase = ScenarioSeeds().front();
  ParseOptions options;
  options.sets.emplace_back(bytes);
  (void)ParseScenario(kBase, "fuzzed.yaml", options);
}
Seeds SettingSeeds() {
  return {"faults.0.at.rank=2", "job={steps: 3}", "expect.budget.recovery=1ms",
          "job.hidden=[1, 2]"};
}

Plan PlanOf(const std::string& scenario) {
  Plan plan;
  plan.scenario = *ParseScenario(scenario, "seed.yaml").scenario;
  plan.digest = "00";
  return plan;
}
void Plans(std::string_view bytes) { FeedJson<Plan>(bytes, PlanFromJson); }
Seeds PlanSeeds() {
  Seeds seeds;
  for (const std::string& scenario : ScenarioSeeds()) {
    if (ParseScenario(scenario, "seed.yaml").scenario) {
      seeds.push_back(DumpJson(ToJson(PlanOf(scenario))));
    }
  }
  return seeds;
}

void Jobs(std::string_view bytes) { FeedJson<JobConfig>(bytes, JobConfigFromJson); }
Seeds JobSeeds() { return {DumpJson(ToJson(JobConfig{}))}; }

void Quantities(std::string_view bytes) {
  (void)ParseDuration(bytes);
  (void)ParseBytes(bytes);
}
Seeds QuantitySeeds() { return {"20ms", "1h", "64KiB", "5s", "10min"}; }

// --- records of a run ----------------------------------------------------------------------------

void Events(std::string_view bytes) {
  for (const Event& event : ParseEvents(bytes).events) {
    const std::string line = EncodeEvent(event);
    const Result<Event> again = DecodeEvent(line);
    SHAKEDOWN_ASSERT(again.has_value());
    SHAKEDOWN_ASSERT(EncodeEvent(*again) == line);
  }
}
Seeds EventSeeds() {
  Seeds seeds(1);
  for (const char* name :
       {events::kRunStarted, events::kPageSampled, secret_events::kFaultInjected}) {
    Event event;
    event.t.ns = 1'000'000;
    event.name = name;
    event.fields = {{"attempt", 0}, {"rank", 1}, {"lanes", {{"main", {{"step", 3}}}}}};
    seeds[0] += EncodeEvent(event) + "\n";
  }
  return seeds;
}

void Ledgers(std::string_view bytes) {
  const Result<Ledger> ledger = DecodeLedger(bytes);
  if (!ledger || ledger->torn_tail) return;
  std::string again = EncodeLedgerHeader(ledger->header);
  for (const LedgerRecord& record : ledger->records) again += EncodeLedgerRecord(record);
  SHAKEDOWN_ASSERT(DecodeLedger(again).has_value());
}
Seeds LedgerSeeds() {
  LedgerStep step;
  step.step = 1;
  step.ids = {3, 1, 2};
  return {EncodeLedgerHeader({1, 3, 0}) + EncodeLedgerRecord(LedgerStart{}) +
          EncodeLedgerRecord(step) + EncodeLedgerRecord(LedgerCheckpoint{1, {}, 5}) +
          EncodeLedgerRecord(LedgerEnd{1, 0, 6})};
}

void Journals(std::string_view bytes) {
  const size_t half = bytes.size() / 2;
  (void)ParseJournal(bytes, "");
  (void)ParseJournal(bytes.substr(0, half), bytes.substr(half));
}
Seeds JournalSeeds() {
  return {R"({"seq":1,"verb":"remove_ballast","path":"/x","sum":"0011"})"
          "\n"};
}

void Manifests(std::string_view bytes) {
  if (const Result<Json> json = ParseJson(bytes)) (void)CheckpointManifestFromJson(*json);
}
Seeds ManifestSeeds() {
  CheckpointManifest manifest;
  manifest.step = 10;
  manifest.file = CheckpointFileName(10);
  manifest.tensors.push_back({"model.weight", "float32", {2, 3}, 24, {}});
  return {DumpJson(ToJson(manifest))};
}

void Archives(std::string_view bytes) {
  const auto records = ReadZipArchive(bytes);
  if (!records) return;
  for (const auto& [name, data] : *records) {
    const bool inside = data.empty() || (data.data() >= bytes.data() &&
                                         data.data() + data.size() <= bytes.data() + bytes.size());
    SHAKEDOWN_ASSERT(inside);
  }
}
// An archive of one stored file "a" with the byte "x".
Seeds ArchiveSeeds() {
  using namespace std::string_literals;
  return {
      "PK\x03\x04\x0a\0\0\0\0\0\0\0\0\0\x83\x16\xdc\x8c\x01\0\0\0\x01\0\0\0\x01\0\0\0"s + "ax"s +
      "PK\x01\x02\x1e\x03\x0a\0\0\0\0\0\0\0\0\0\x83\x16\xdc\x8c\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0"s +
      "\0\0\0\0\0\0\0\0\0\0"s + "a"s + "PK\x05\x06\0\0\0\0\x01\0\x01\0\x2f\0\0\0\x20\0\0\0\0\0"s};
}

void Verdicts(std::string_view bytes) {
  if (const Result<Json> json = ParseJson(bytes)) (void)RunVerdictFromJson(*json);
}
Seeds VerdictSeeds() {
  RunVerdict verdict;
  verdict.scenario = "control";
  verdict.checks.push_back({"assumptions", {}, ""});
  return {DumpJson(ToJson(verdict))};
}

// --- between our own processes
// ---------------------------------------------------------------------

void ReaperBytes(std::string_view bytes) {
  if (const Result<std::string> read = BytesFromJson(bytes)) {
    SHAKEDOWN_ASSERT(BytesFromJson(BytesToJson(*read)) == *read);
  }
}
Seeds ReaperSeeds() { return {BytesToJson("a\xff\x80z"), "plain"}; }

}  // namespace

const std::vector<Target>& Targets() {
  static const std::vector<Target> kTargets = {
      {"scenario", Scenarios, ScenarioSeeds},
      {"setting", Settings, SettingSeeds},
      {"plan", Plans, PlanSeeds},
      {"job", Jobs, JobSeeds},
      {"quantity", Quantities, QuantitySeeds},
      {"events", Events, EventSeeds},
      {"ledger", Ledgers, LedgerSeeds},
      {"journal", Journals, JournalSeeds},
      {"manifest", Manifests, ManifestSeeds},
      {"archive", Archives, ArchiveSeeds},
      {"verdict", Verdicts, VerdictSeeds},
      {"reaper_bytes", ReaperBytes, ReaperSeeds},
  };
  return kTargets;
}

}  // namespace shakedown::fuzz
