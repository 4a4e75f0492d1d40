#include "tests/support/run_dir_builder.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "analysis/checks/catalog.h"
#include "analysis/checks/run_checks.h"
#include "harness/base/digest.h"
#include "harness/base/file.h"
#include "harness/wire/checkpoint_format.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/log_events.h"
#include "harness/wire/run_dir.h"
#include "harness/wire/schedule.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {
namespace {

// What the faults of the smoke suite declare (injectors/*/*.cc).
std::string MechanismOf(const std::string& fault) {
  if (fault == "rank.kill") return "killed";
  if (fault == "rank.stall" || fault == "collective.never_return") return "not_joined";
  if (fault == "memory.device_oom") return "out_of_memory_device";
  if (fault == "data.worker_slow") return "slow_data";
  if (fault == "disk.full") return "storage_full";
  return "unknown";
}

namespace fs = std::filesystem;
namespace le = log_events;

constexpr int64_t kSamples = 1797;
constexpr size_t kWeights = 64;  // float32 values of the pretended model

// Weights of the pretended model after a step, equal on all ranks.
std::string WeightsAfter(int64_t step) {
  std::string bytes;
  for (size_t i = 0; i < kWeights; ++i) {
    const float value = 1.0F / static_cast<float>(step + 1) + static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

StateDigests StateAfter(int64_t step, int rank) {
  const std::string weights = WeightsAfter(step);
  const auto of = [](const std::string& text, uint64_t bytes) {
    return SizedDigest{Xxh3Of(text), bytes};
  };
  return {{Xxh3Of(weights), weights.size()},
          of("optimizer/" + std::to_string(step), 1024),
          of("rng/" + std::to_string(step) + "/" + std::to_string(rank), 5056)};
}

Digest128 FileDigest(int64_t step) { return Xxh3Of("file/" + std::to_string(step)); }

std::string Hex64(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

void Write(const fs::path& path, std::string_view bytes) {
  SHAKEDOWN_ASSERT(MakeDirectories(path.parent_path()).has_value());
  SHAKEDOWN_ASSERT(PublishFile(path, bytes, Durability::kBuffered).has_value());
}

std::string Lines(const std::vector<Json>& records) {
  std::string out;
  for (const Json& record : records) out += DumpJson(record) + "\n";
  return out;
}

void WriteRank(const fs::path& folder, const FakeRank& rank) {
  std::string ledger = EncodeLedgerHeader(rank.header);
  for (const LedgerRecord& record : rank.ledger) ledger += EncodeLedgerRecord(record);
  Write(folder / kRankLedger, ledger);
  if (!rank.log.empty()) Write(folder / kRankLog, Lines(rank.log));
  if (!rank.weights_start.empty()) Write(folder / kRankWeightsStart, rank.weights_start);
  if (!rank.weights_end.empty()) Write(folder / kRankWeightsEnd, rank.weights_end);
}

Json SealOf(const fs::path& root, const std::vector<fs::path>& places) {
  Json files = Json::array();
  const auto add = [&](const fs::path& file) {
    const Result<std::string> bytes = ReadFile(file);
    SHAKEDOWN_ASSERT(bytes.has_value());
    files.push_back({{"name", file.lexically_relative(root).native()},
                     {"bytes", bytes->size()},
                     {"records", nullptr},
                     {"sha256", Sha256Hex(*bytes)}});
  };
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place)) add(place);
    if (!fs::is_directory(place)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      if (entry.is_regular_file()) add(entry.path());
    }
  }
  return files;
}

// The controller sees a line a millisecond after it was written.
void AddArrivals(std::vector<Event>* events, int attempt, std::optional<int> rank,
                 const std::string& file, const std::vector<Json>& lines) {
  int number = 0;
  for (const Json& line : lines) {
    const std::string text = DumpJson(line);
    Event event;
    event.name = events::kLineArrived;
    event.t = MonoTime{IntField(line, "t_ns").value_or(0) + 1'000'000};
    event.fields = {{"attempt", attempt},
                    {"rank", rank ? Json(*rank) : Json(nullptr)},
                    {"source", rank ? "log" : "launcher"},
                    {"file", file},
                    {"line", ++number},
                    {"bytes", text.size()},
                    {"xxh3", Hex64(Xxh3Of64(text))}};
    events->push_back(std::move(event));
  }
}

}  // namespace

LedgerStep& FakeRank::Row(uint64_t step) {
  for (LedgerRecord& record : ledger) {
    if (auto* row = std::get_if<LedgerStep>(&record); row != nullptr && row->step == step) {
      return *row;
    }
  }
  SHAKEDOWN_ASSERT(false && "no such step");
}

RunDirBuilder::RunDirBuilder(const std::string& name) {
  plan.scenario.name = name;
  plan.scenario.summary = "made for a test";
  JobConfig& j = job();
  j.step_time = std::chrono::milliseconds(20);
  j.data_dir = "digits";
  j.worker_deadline = std::chrono::seconds(1);
  count_.assign(static_cast<size_t>(j.ranks), 0);
  key = {{"numerics", {{"OMP_NUM_THREADS", "1"}}}};
  run_json = {
      {"schema_version", kSchemaVersion},
      {"reference",
       {{"key", ToHex(Xxh3Of(DumpJson(key)))}, {"made_ms", 1}, {"cached", true}, {"equal", true}}}};
  journal.push_back(
      {{"seq", 0}, {"controller", {{"pid", 1}}}, {"reaper", nullptr}, {"run_dir", "x"}});
}

void RunDirBuilder::Observe(const char* event, Json fields) {
  Event e;
  e.t = MonoTime{now_ns_};
  e.name = event;
  e.fields = std::move(fields);
  observed.push_back(std::move(e));
}

void RunDirBuilder::Secret(const char* event, Json fields) {
  Event e;
  e.t = MonoTime{now_ns_};
  e.name = event;
  e.fields = std::move(fields);
  injected.push_back(std::move(e));
}

void RunDirBuilder::Log(int rank, const char* level, const char* event, Json fields) {
  Json line = {{"timestamp", "2026-11-30T00:00:00.000Z"},
               {"t_ns", now_ns_},
               {"level", level},
               {"rank", rank},
               {"step", std::min<int64_t>(step_ + 1, job().steps)},
               {"event", event},
               {"message", std::string("about ") + event}};
  for (const auto& [name, value] : fields.items()) line[name] = value;
  attempts.back().ranks[static_cast<size_t>(rank)].log.push_back(std::move(line));
}

void RunDirBuilder::Launcher(const char* level, const char* event, Json fields) {
  Json line = {{"timestamp", "2026-11-30T00:00:00.000Z"},
               {"t_ns", now_ns_},
               {"level", level},
               {"event", event},
               {"message", std::string("about ") + event}};
  for (const auto& [name, value] : fields.items()) line[name] = value;
  attempts.back().launcher.push_back(std::move(line));
}

void RunDirBuilder::SamplePage(int rank, const std::string& point, int64_t step, bool final) {
  Json fields = {{"attempt", attempts.back().attempt},
                 {"rank", rank},
                 {"worker", nullptr},
                 {"incarnation", 0}};
  const int64_t count = ++count_[static_cast<size_t>(rank)];
  fields["lanes"] = {{"main", {{"point", point}, {"step", step}, {"count", count}}}};
  fields["last_step"] = step_;
  fields["last_step_ns"] = step_ == 0 ? 0 : now_ns_;
  fields["collectives_entered"] = 2 * step_;
  fields["collectives_enqueued"] = 2 * step_;
  fields["committed_step"] = rank == 0 && !complete_.empty() ? complete_.back() : 0;
  fields["checkpoint_error"] = nullptr;
  if (final) fields["final"] = true;
  Observe(events::kPageSampled, std::move(fields));
}

void RunDirBuilder::Inspect(const char* reason) {
  Json record = {{"t_ns", now_ns_},
                 {"attempt", attempts.empty() ? 0 : attempts.back().attempt},
                 {"reason", reason},
                 {"files", Json::array()},
                 {"checkpoints", Json::array()}};
  for (const int64_t step : complete_) {
    record["files"].push_back({{"name", CheckpointFileName(step)}, {"bytes", 1000}});
    const StateDigests state = StateAfter(step, 0);
    Json rng = Json::array();
    for (int r = 0; r < job().ranks; ++r) rng.push_back(ToHex(StateAfter(step, r).rng.digest));
    record["checkpoints"].push_back({{"step", step},
                                     {"name", CheckpointManifestName(step)},
                                     {"published", true},
                                     {"complete", true},
                                     {"verified", true},
                                     {"why", ""},
                                     {"file_xxh3", ToHex(FileDigest(step))},
                                     {"weights", ToHex(state.weights.digest)},
                                     {"optimizer", ToHex(state.optimizer.digest)},
                                     {"rng", std::move(rng)}});
  }
  checkpoints.push_back(std::move(record));
}

LedgerStep RunDirBuilder::MakeRow(int64_t step, int rank) const {
  const JobConfig& j = plan.scenario.job;
  const int64_t per_epoch = StepsPerEpoch(j, kSamples);
  const int64_t epoch = (step - 1) / per_epoch;
  const int64_t k = (step - 1) % per_epoch;
  const int64_t per_rank = int64_t{1} * j.micro_batch * j.accumulation;
  LedgerStep row;
  row.step = static_cast<uint64_t>(step);
  row.epoch = static_cast<uint64_t>(epoch);
  row.position = static_cast<uint64_t>((k + 1) * j.global_batch());
  row.lr_bits = std::bit_cast<uint64_t>(LearningRate(j, step));
  row.loss_bits = std::bit_cast<uint64_t>(1.0 / static_cast<double>(step + rank));
  row.grad_norm_bits = std::bit_cast<uint64_t>(2.0 / static_cast<double>(step));
  static const std::vector<std::vector<uint32_t>> kOrders = {EpochOrder(1, 0, kSamples),
                                                             EpochOrder(1, 1, kSamples)};
  const auto& order = kOrders.at(static_cast<size_t>(epoch));
  const auto from = order.begin() + k * j.global_batch() + rank * per_rank;
  row.ids.assign(from, from + per_rank);
  std::string bytes(reinterpret_cast<const char*>(row.ids.data()), row.ids.size() * 4);
  row.ids_digest = Xxh3Of(bytes);
  for (size_t at = 0; at < bytes.size(); at += 4) {
    row.ids_sum += Xxh3Of64(std::string_view(bytes).substr(at, 4));
  }
  row.state = StateAfter(step, rank);
  row.t_ns = now_ns_;
  return row;
}

void RunDirBuilder::BeginAttempt(int attempt, int64_t resume_from) {
  if (attempt == 0) {
    Json input = {{"schema_version", kSchemaVersion},
                  {"run_id", "test"},
                  {"job", ToJson(job())},
                  {"samples", kSamples},
                  {"input", 64},
                  {"numerics", {{"OMP_NUM_THREADS", "1"}}}};
    Observe(events::kRunStarted, std::move(input));
    for (int i = 0; i < 2; ++i) {
      Observe(events::kLoadSampled, {{"load1", 0.5},
                                     {"cpus", 2},
                                     {"pressure_some_avg10", 1.0},
                                     {"steal_ticks", 5},
                                     {"slip_ms", 1.0}});
      Sleep(10);
    }
  }
  step_ = resume_from;
  FakeAttempt fresh;
  fresh.attempt = attempt;
  fresh.ranks.resize(static_cast<size_t>(job().ranks));
  attempts.push_back(std::move(fresh));
  Observe(events::kAttemptStarted, {{"attempt", attempt}});
  Inspect("attempt_start");
  Launcher("INFO", le::kAttemptStarted,
           {{"attempt", attempt},
            {"ranks", job().ranks},
            {"store", "store-" + std::to_string(attempt)},
            {"restarts_left", job().max_restarts - attempt}});
  for (int r = 0; r < job().ranks; ++r) {
    Launcher("INFO", le::kRankSpawned, {{"rank", r}, {"pid", 100 * (attempt + 1) + r}});
    Observe(
        events::kProcessHello,
        {{"attempt", attempt}, {"role", "rank"}, {"rank", r}, {"pid", 100 * (attempt + 1) + r}});
  }
  Sleep(200);
  for (int r = 0; r < job().ranks; ++r) {
    FakeRank& rank = attempts.back().ranks[static_cast<size_t>(r)];
    rank.header = {r, job().ranks, attempt};
    LedgerStart start;
    start.step = static_cast<uint64_t>(resume_from);
    if (resume_from > 0) {
      start.file = CheckpointFileName(resume_from);
      start.file_digest = FileDigest(resume_from);
    }
    start.state = StateAfter(resume_from, r);
    start.t_ns = now_ns_;
    rank.ledger.push_back(start);
    rank.weights_start = WeightsAfter(resume_from);
    Observe(events::kRankJoined, {{"attempt", attempt},
                                  {"rank", r},
                                  {"world_size", job().ranks},
                                  {"pid", 100 * (attempt + 1) + r}});
    Log(r, "INFO", le::kRankStarted, {{"attempt", attempt}});
    if (resume_from > 0) {
      Log(r, "INFO", le::kResumed, {{"checkpoint", resume_from}});
    } else {
      Log(r, "INFO", le::kStartedFresh);
    }
  }
}

void RunDirBuilder::Save(int64_t step) {
  complete_.push_back(step);
  std::sort(complete_.begin(), complete_.end());
  complete_.erase(std::unique(complete_.begin(), complete_.end()), complete_.end());
  Log(0, "INFO", le::kCheckpointSaved,
      {{"checkpoint", step}, {"file", CheckpointFileName(step)}, {"bytes", 1000}, {"write_ms", 2}});
  attempts.back().ranks[0].ledger.push_back(
      LedgerCheckpoint{static_cast<uint64_t>(step), FileDigest(step), now_ns_});
  Observe(events::kFilePublished,
          {{"what", "checkpoint"}, {"step", step}, {"name", CheckpointManifestName(step)}});
  Inspect("publish");
  if (complete_.size() > static_cast<size_t>(job().checkpoint.keep)) {
    complete_.erase(complete_.begin());
    Inspect("rotate");
  }
}

void RunDirBuilder::Step(int64_t step) {
  Sleep(20);
  step_ = step;
  for (int r = 0; r < job().ranks; ++r) {
    LedgerStep row = MakeRow(step, r);
    if (shape_.lr_of_step_before != 0) {
      row.lr_bits = std::bit_cast<uint64_t>(LearningRate(job(), step - 1));
    }
    attempts.back().ranks[static_cast<size_t>(r)].ledger.push_back(std::move(row));
  }
  now_ns_ += 1'000'000;
  for (int r = 0; r < job().ranks; ++r) SamplePage(r, "step.end", step);
  now_ns_ -= 1'000'000;
}

void RunDirBuilder::StepsUpTo(int64_t last) {
  for (int64_t step = step_ + 1; step <= last; ++step) {
    Step(step);
    if (step % job().checkpoint.every == 0) {
      Sleep(5);
      Save(step);
    }
  }
}

void RunDirBuilder::Exit(int rank, std::optional<int> code, const std::string& signal,
                         const std::string& by) {
  const int attempt = attempts.back().attempt;
  const int pid = 100 * (attempt + 1) + rank;
  Json how = code ? Json{{"code", *code}} : Json{{"signal", signal}};
  Json seen = {{"attempt", attempt}, {"role", "rank"},   {"rank", rank},
               {"worker", nullptr},  {"incarnation", 0}, {"pid", pid}};
  Json said = {{"rank", rank}, {"pid", pid}};
  for (const auto& [name, value] : how.items()) seen[name] = said[name] = value;
  seen["source"] = "connector";
  said["by"] = by;
  Observe(events::kProcessExited, std::move(seen));
  Launcher(code == 0 ? "INFO" : "ERROR", le::kRankExited, std::move(said));
}

void RunDirBuilder::FailAttempt(int cause, const std::string& reason, int64_t last_step) {
  const int attempt = attempts.back().attempt;
  Json consequences = Json::array();
  for (int r = 0; r < job().ranks; ++r) {
    if (r != cause) consequences.push_back({{"rank", r}, {"what", "peer lost"}});
  }
  Launcher("ERROR", le::kAttemptFailed,
           {{"attempt", attempt},
            {"first", cause},
            {"reason", reason},
            {"cause", Json::array({{{"rank", cause}, {"what", reason}}})},
            {"consequences", std::move(consequences)},
            {"last_step", last_step}});
  Launcher("WARNING", le::kRestartScheduled,
           {{"attempt", attempt + 1}, {"restarts_left", job().max_restarts - attempt - 1}});
  Observe(events::kAttemptEnded, {{"attempt", attempt}});
  Sleep(5);
}

void RunDirBuilder::FinishJob() {
  for (int r = 0; r < job().ranks; ++r) {
    FakeRank& rank = attempts.back().ranks[static_cast<size_t>(r)];
    rank.ledger.push_back(LedgerEnd{static_cast<uint64_t>(step_), 0, now_ns_});
    rank.weights_end = WeightsAfter(step_);
    Log(r, "INFO", le::kTrainingFinished, {{"steps", step_}});
    SamplePage(r, "exit", step_, true);
  }
  Sleep(10);
  for (int r = 0; r < job().ranks; ++r) Exit(r, 0, "", "itself");
  Launcher("INFO", le::kJobFinished, {{"attempts", attempts.size()}, {"exit_code", 0}});
  Sleep(5);
  Observe(events::kJobExited, {{"code", 0}, {"source", "waitid"}});
  Observe(events::kLeftoversInspected, {{"processes", Json::array()},
                                        {"temporary", Json::array()},
                                        {"inspected", {"processes", "temporary"}}});
  Observe(events::kAttemptEnded, {{"attempt", attempts.back().attempt}});
  Inspect("attempt_end");
  EndRun();
}

void RunDirBuilder::EndRun() {
  Observe(events::kLoadSampled, {{"load1", 0.5},
                                 {"cpus", 2},
                                 {"pressure_some_avg10", 1.0},
                                 {"steal_ticks", 5},
                                 {"slip_ms", 2.0}});
  Observe(events::kRunEnded, {{"how", "completed"}, {"reason", ""}});
  plan.digest = PlanDigest(plan);
  MakeReference();
}

void RunDirBuilder::MakeReference() {
  for (int r = 0; r < job().ranks; ++r) {
    FakeRank rank;
    rank.header = {r, job().ranks, 0};
    rank.ledger.push_back(LedgerStart{0, "", {}, StateAfter(0, r), 1});
    for (int64_t s = 1; s <= job().steps; ++s) rank.ledger.push_back(MakeRow(s, r));
    rank.ledger.push_back(LedgerEnd{static_cast<uint64_t>(job().steps), 0, 2});
    rank.weights_end = WeightsAfter(job().steps);
    reference.push_back(std::move(rank));
  }
}

void RunDirBuilder::Inject(const Injection& injection, std::optional<int64_t> undone_after_ms) {
  plan.injections.push_back(injection);
  Json place = {{"injection", injection.id},
                {"fault", injection.fault},
                {"rank", injection.rank},
                {"worker", injection.worker ? Json(*injection.worker) : Json(nullptr)},
                {"attempt", injection.attempt},
                {"point", PointName(injection.point)},
                {"step", injection.step},
                {"occurrence", injection.occurrence}};
  Json hold = place;
  hold["decoy"] = false;
  hold["reached_ns"] = now_ns_ - 1'000'000;
  Secret(secret_events::kHoldEntered, hold);
  Json record = place;
  record["level"] = injection.level;
  record["means"] = injection.means;
  record["t0_ns"] = now_ns_;
  record["facts"] = Json::object();
  if (injection.fault == "rank.kill") record["facts"]["signal"] = "SIGKILL";
  record["mechanism"] = MechanismOf(injection.fault);
  Secret(secret_events::kFaultInjected, std::move(record));
  hold["hold_ms"] = 2.0;
  hold["acted"] = true;
  Secret(secret_events::kHoldReleased, std::move(hold));
  for (const char* kind : {"effect", "consequence", "bystander"}) {
    Secret(secret_events::kWitnessed, {{"injection", injection.id},
                                       {"kind", kind},
                                       {"holds", true},
                                       {"what", std::string(kind) + " of the fault"},
                                       {"observed", "yes"},
                                       {"expected", "yes"},
                                       {"unit", ""},
                                       {"samples", 3},
                                       {"held", 3},
                                       {"first_ms", 1.0},
                                       {"last_ms", 9.0}});
  }
  if (!undone_after_ms) return;
  const int64_t t0 = now_ns_;
  now_ns_ += *undone_after_ms * 1'000'000;
  Secret(
      secret_events::kFaultUndone,
      {{"injection", injection.id}, {"ok", true}, {"reason", ""}, {"after_ms", *undone_after_ms}});
  Secret(secret_events::kWitnessed, {{"injection", injection.id},
                                     {"kind", "undone"},
                                     {"holds", true},
                                     {"what", "space is back"},
                                     {"observed", 1},
                                     {"expected", 1},
                                     {"unit", ""},
                                     {"samples", 1},
                                     {"held", 1},
                                     {"first_ms", 9.0},
                                     {"last_ms", 9.0}});
  now_ns_ = t0;
}

RunDirBuilder RunDirBuilder::Control(const JobShape& shape) {
  RunDirBuilder run("control");
  run.shape_ = shape;
  run.BeginAttempt(0, 0);
  run.StepsUpTo(shape.last_step);
  run.FinishJob();
  return run;
}

namespace {

Injection MakeInjection(const char* fault, int rank, int64_t step, Point point) {
  Injection i;
  i.id = 1;
  i.fault = fault;
  i.rank = rank;
  i.step = step;
  i.point = point;
  i.level = "real";
  i.means = "made for a test";
  return i;
}

}  // namespace

RunDirBuilder RunDirBuilder::RankKilled(const JobShape& shape) {
  RunDirBuilder run("rank_killed");
  run.shape_ = shape;
  Expectation& expect = run.expect();
  expect.outcome = Outcome::kRecovers;
  expect.diagnosis = {{{"rank", 1, std::nullopt, ""}}, "killed"};
  expect.detected_within = std::chrono::seconds(1);
  expect.resume_from = 30;
  expect.recovery_budget = std::chrono::seconds(3);
  expect.lost_steps_budget = 10;
  run.BeginAttempt(0, 0);
  run.StepsUpTo(38);
  run.Sleep(3);
  run.SamplePage(1, "collective.enter", 39, true);
  Injection kill = MakeInjection("rank.kill", 1, 39, Point::kCollectiveEnter);
  kill.with["signal"] = std::string("KILL");
  run.Inject(kill);
  run.Sleep(1);
  run.Exit(1, std::nullopt, "SIGKILL", "itself");
  run.Sleep(2);
  for (const int r : {0, 2}) {
    run.Log(r, "ERROR", le::kPeerLost,
            {{"phase", "collective"}, {"error", "connection closed"}, {"waited_ms", 3}});
    run.Log(r, "ERROR", le::kRankFailed,
            {{"phase", "collective"}, {"error", "connection closed"}, {"exit_code", 65}});
    run.SamplePage(r, "exit", 39, true);
  }
  run.Sleep(2);
  for (const int r : {0, 2}) run.Exit(r, 65, "", "itself");
  run.FailAttempt(1, "signal", 38);
  run.BeginAttempt(1, shape.resume_from);
  run.StepsUpTo(shape.last_step);
  run.FinishJob();
  return run;
}

RunDirBuilder RunDirBuilder::CollectiveTimeout() {
  RunDirBuilder run("collective_timeout");
  Expectation& expect = run.expect();
  run.job().collective_timeout = std::chrono::seconds(5);
  expect.outcome = Outcome::kRecovers;
  expect.diagnosis = {{{"rank", 1, std::nullopt, ""}}, "not_joined"};
  expect.timeout_fires = "collective";
  run.BeginAttempt(0, 0);
  run.StepsUpTo(38);
  run.Sleep(3);
  run.SamplePage(1, "collective.enter", 39, true);
  run.Inject(MakeInjection("rank.stall", 1, 39, Point::kCollectiveEnter));
  run.Sleep(1000);
  run.Observe(events::kNoProgress,
              {{"attempt", 0}, {"last_step", 38}, {"waited_ms", 1060}, {"limit_ms", 1060}});
  run.Sleep(4010);
  for (const int r : {0, 2}) {
    run.Log(r, "ERROR", le::kCollectiveTimeout,
            {{"phase", "collective"},
             {"collective", 77},
             {"timeout_ms", 5000},
             {"waited_ms", 5010},
             {"error", "timed out"}});
    run.Log(r, "ERROR", le::kRankFailed,
            {{"phase", "collective"}, {"error", "timed out"}, {"exit_code", 66}});
  }
  run.Sleep(2);
  for (const int r : {0, 2}) run.Exit(r, 66, "", "itself");
  run.Sleep(100);
  run.Exit(1, std::nullopt, "SIGKILL", "launcher");
  run.FailAttempt(1, "timeout", 38);
  run.BeginAttempt(1, 30);
  run.StepsUpTo(60);
  run.FinishJob();
  return run;
}

RunDirBuilder RunDirBuilder::HangWatchdog() {
  RunDirBuilder run("hang_watchdog");
  Expectation& expect = run.expect();
  run.job().collective_timeout = std::chrono::minutes(10);
  run.job().watchdog = std::chrono::seconds(1);
  expect.outcome = Outcome::kRecovers;
  expect.diagnosis = {{{"rank", 1, std::nullopt, ""}}, "not_joined"};
  expect.timeout_fires = "watchdog";
  run.BeginAttempt(0, 0);
  run.StepsUpTo(38);
  run.Sleep(3);
  run.SamplePage(1, "collective.enter", 39, true);
  run.Inject(MakeInjection("rank.stall", 1, 39, Point::kCollectiveEnter));
  run.Sleep(1040);
  run.Launcher(
      "ERROR", le::kWatchdogFired,
      {{"limit_ms", 1000}, {"waited_ms", 1050}, {"last_step", 38}, {"behind", Json::array()}});
  run.Sleep(2);
  for (const int r : {0, 1, 2}) run.Exit(r, std::nullopt, "SIGKILL", "launcher");
  run.FailAttempt(1, "watchdog", 38);
  run.BeginAttempt(1, 30);
  run.StepsUpTo(60);
  run.FinishJob();
  return run;
}

RunDirBuilder RunDirBuilder::DiskFull() {
  RunDirBuilder run("disk_full");
  run.expect().diagnosis = {{{"storage", std::nullopt, std::nullopt, "checkpoint"}},
                            "storage_full"};
  run.expect().detected_within = std::chrono::seconds(1);
  run.BeginAttempt(0, 0);
  run.StepsUpTo(19);
  run.Step(20);
  run.Sleep(5);
  Injection full = MakeInjection("disk.full", 0, 20, Point::kCheckpointWrite);
  full.until = "save_failed";
  run.Inject(full, 12);
  run.Sleep(3);
  run.Log(0, "ERROR", le::kCheckpointFailed,
          {{"checkpoint", 20},
           {"operation", "write"},
           {"errno", ENOSPC},
           {"error", "No space left on device"},
           {"mode", "async"}});
  run.SamplePage(0, "step.begin", 21);
  run.observed.back().fields["checkpoint_error"] = {{"errno", ENOSPC}, {"step", 20}};
  run.StepsUpTo(60);
  run.FinishJob();
  return run;
}

RunDirBuilder RunDirBuilder::SlowDataWorker() {
  RunDirBuilder run("slow_data_worker");
  run.expect().diagnosis = {{{"data", 0, 0, ""}}, "slow_data"};
  run.expect().timeout_fires = "worker_deadline";
  run.BeginAttempt(0, 0);
  run.StepsUpTo(5);
  Injection slow = MakeInjection("data.worker_slow", 0, 12, Point::kWorkerRead);
  slow.worker = 0;
  run.Inject(slow);
  run.Step(6);
  run.Sleep(5);
  run.SamplePage(0, "data.next", 7);
  run.Sleep(500);
  const Json batch = {{"worker", 0}, {"batch", 13}, {"waited_ms", 500}};
  run.Log(0, "WARNING", le::kDataSlow, batch);
  run.Sleep(520);
  Json replaced = batch;
  replaced["waited_ms"] = 1020;
  replaced["deadline_ms"] = 1000;
  replaced["incarnation"] = 1;
  run.Log(0, "WARNING", le::kWorkerReplaced, replaced);
  run.Sleep(1);
  run.Observe(events::kProcessExited, {{"attempt", 0},
                                       {"role", "worker"},
                                       {"rank", 0},
                                       {"worker", 0},
                                       {"incarnation", 0},
                                       {"pid", 900},
                                       {"signal", "SIGKILL"},
                                       {"source", "connector"}});
  run.StepsUpTo(60);
  run.FinishJob();
  return run;
}

RunDirBuilder RunDirBuilder::OutOfMemory() {
  RunDirBuilder run("out_of_memory");
  run.expect().outcome = Outcome::kDegrades;
  run.expect().weights_tolerance = 1e-5;
  run.expect().diagnosis = {{{"rank", 0, std::nullopt, ""}}, "out_of_memory_device"};
  run.BeginAttempt(0, 0);
  run.StepsUpTo(14);
  run.Sleep(3);
  Injection oom = MakeInjection("memory.device_oom", 0, 15, Point::kForwardBegin);
  oom.level = "simulated";
  run.Inject(oom);
  run.Sleep(1);
  run.Log(0, "ERROR", le::kMemoryExhausted,
          {{"phase", "forward"},
           {"requested_bytes", 4096},
           {"in_use_bytes", 1 << 20},
           {"limit_bytes", nullptr},
           {"error", "out of memory"}});
  run.Log(0, "WARNING", le::kMemorySplit, {{"parts", 2}});
  run.StepsUpTo(60);
  run.attempts[0].ranks[0].Row(15).parts = 2;
  run.FinishJob();
  return run;
}

Event& RunDirBuilder::FindObserved(std::string_view name, size_t index) {
  for (Event& event : observed) {
    if (event.name == name && index-- == 0) return event;
  }
  SHAKEDOWN_ASSERT(false && "no such event");
}

Event& RunDirBuilder::FindInjected(std::string_view name, size_t index) {
  for (Event& event : injected) {
    if (event.name == name && index-- == 0) return event;
  }
  SHAKEDOWN_ASSERT(false && "no such event");
}

namespace {
std::vector<Json>& LogOf(std::vector<FakeAttempt>& attempts, int attempt, std::optional<int> rank) {
  FakeAttempt& a = attempts.at(static_cast<size_t>(attempt));
  return rank ? a.ranks.at(static_cast<size_t>(*rank)).log : a.launcher;
}
}  // namespace

size_t RunDirBuilder::RemoveLines(int attempt, std::optional<int> rank, std::string_view event) {
  return std::erase_if(LogOf(attempts, attempt, rank),
                       [&](const Json& line) { return StringField(line, "event") == event; });
}

Json* RunDirBuilder::FindLine(int attempt, std::optional<int> rank, std::string_view event) {
  for (Json& line : LogOf(attempts, attempt, rank)) {
    if (StringField(line, "event") == event) return &line;
  }
  return nullptr;
}

void RunDirBuilder::WriteTo(const fs::path& directory) const {
  const RunDir run(directory);
  std::vector<Event> events = observed;
  for (const FakeAttempt& attempt : attempts) {
    const int k = attempt.attempt;
    const auto relative = [&](const fs::path& path) {
      return path.lexically_relative(directory).native();
    };
    Write(run.launcher_log(k), Lines(attempt.launcher));
    AddArrivals(&events, k, std::nullopt, relative(run.launcher_log(k)), attempt.launcher);
    for (const FakeRank& rank : attempt.ranks) {
      const int r = rank.header.rank;
      WriteRank(run.rank(k, r), rank);
      AddArrivals(&events, k, r, relative(run.rank(k, r) / kRankLog), rank.log);
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.t < b.t; });
  std::string text;
  for (const Event& event : events) text += EncodeEvent(event) + "\n";
  Write(run.observed(), text);
  text.clear();
  for (const Event& event : injected) text += EncodeEvent(event) + "\n";
  Write(run.injected(), text);
  Write(run.checkpoints(), Lines(checkpoints));
  Json config = run_json;
  config["plan"] = ToJson(plan);
  Write(run.run_json(), DumpPretty(config));
  Write(run.job_config(), DumpPretty(ToJson(plan.scenario.job)));
  text.clear();
  for (const Json& record : journal) text += EncodeRecord(record) + "\n";
  Write(run.journal(), text);
  for (const FakeRank& rank : reference) {
    WriteRank(run.reference() / ("rank-" + std::to_string(rank.header.rank)), rank);
  }
  Write(run.reference() / "key.json", DumpPretty(key));
  if (write_seal) SealAgain(directory);
}

void SealAgain(const fs::path& directory) {
  const RunDir run(directory);
  Json seal = {{"schema_version", kSchemaVersion}, {"attempts", Json::array()}};
  for (int k = 0; fs::is_directory(run.attempt(k)); ++k) {
    seal["attempts"].push_back(
        {{"attempt", k}, {"sealed_ns", 1}, {"files", SealOf(directory, {run.attempt(k)})}});
  }
  seal["run"]["files"] = SealOf(directory, {run.observed(), run.injected(), run.checkpoints(),
                                            run.job_config(), run.run_json(), run.reference()});
  const Json journal = SealOf(directory, {run.journal()});
  seal["journal"] = journal.empty() ? Json(nullptr) : journal[0];
  Write(run.seal(), DumpPretty(seal));
}

Finding JudgeOneAfter(const RunDirBuilder& run, std::string_view check,
                      const std::function<void(const fs::path&)>& tamper) {
  const TempDir folder;
  run.WriteTo(folder.path());
  if (tamper) tamper(folder.path());
  const RunDir directory(folder.path());
  const Result<ObservedEvidence> observed = LoadObserved(directory);
  SHAKEDOWN_ASSERT(observed.has_value());
  const SecretEvidence secret = LoadSecret(directory);
  const ReferenceEvidence reference = LoadReference(directory, *observed, secret.run);
  const SealReport seal = VerifySeal(directory);
  const Timeline timeline = BuildTimeline(*observed, secret);
  const LoadReport load = MeasureLoad(*observed);
  const CheckInfo* info = FindCheck(check);
  SHAKEDOWN_ASSERT(info != nullptr);
  return RunCheck(*info, {*observed, secret, reference, seal, timeline, load});
}

Finding JudgeOne(const RunDirBuilder& run, std::string_view check) {
  return JudgeOneAfter(run, check, nullptr);
}

}  // namespace shakedown::test_support
