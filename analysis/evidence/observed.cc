#include "analysis/evidence/observed.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <deque>

#include "analysis/evidence/folder.h"
#include "analysis/evidence/process_files.h"
#include "analysis/evidence/sane.h"
#include "harness/base/file.h"

namespace shakedown {
namespace {

// A small non-negative number that fits an int; anything else is as good as absent.
std::optional<int> SmallInt(const Json& object, std::string_view key) {
  const auto value = IntField(object, key);
  if (!value || *value < 0 || *value > 1'000'000) return std::nullopt;
  return static_cast<int>(*value);
}

// "rank-12" -> 12 for the prefix "rank-"; nullopt for any other name.
std::optional<int> NumberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int value = 0;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (ec != std::errc() || end != name.data() + name.size() || value < 0) return std::nullopt;
  return value;
}

PageSample ToPage(const Event& event, int attempt, int rank) {
  const Json& f = event.fields;
  PageSample page;
  page.t = event.t;
  page.attempt = attempt;
  page.rank = rank;
  page.worker = SmallInt(f, "worker");
  page.incarnation = IntField(f, "incarnation").value_or(0);
  const Json& lanes = Field(f, "lanes");
  if (lanes.is_object()) {
    for (const auto& [name, lane] : lanes.items()) {
      page.lanes[name] = {StringField(lane, "point").value_or(""),
                          IntField(lane, "step").value_or(0), IntField(lane, "count").value_or(0)};
    }
  }
  page.last_step = SaneStep(IntField(f, "last_step").value_or(0));
  page.last_step_ns = SaneTime(IntField(f, "last_step_ns").value_or(0)).ns;
  page.collectives_entered = IntField(f, "collectives_entered").value_or(0);
  page.collectives_enqueued = IntField(f, "collectives_enqueued").value_or(0);
  page.committed_step = SaneStep(IntField(f, "committed_step").value_or(0));
  const Json& error = Field(f, "checkpoint_error");
  if (error.is_object()) {
    page.checkpoint_error = PageSample::CheckpointError{
        IntField(error, "errno").value_or(0), SaneStep(IntField(error, "step").value_or(0))};
  }
  page.final = BoolField(f, "final").value_or(false);
  page.where = ObservedEvidence::At(event);
  return page;
}

ProcessExit ToExit(const Event& event, int attempt, int rank) {
  const Json& f = event.fields;
  ProcessExit exit;
  exit.t = event.t;
  exit.attempt = attempt;
  exit.role = StringField(f, "role").value_or("rank");
  exit.rank = rank;
  exit.worker = SmallInt(f, "worker");
  exit.incarnation = IntField(f, "incarnation").value_or(0);
  exit.pid = IntField(f, "pid").value_or(0);
  if (const auto code = IntField(f, "code")) exit.code = static_cast<int>(*code);
  exit.signal = StringField(f, "signal").value_or("");
  exit.source = StringField(f, "source").value_or("unknown");
  exit.where = ObservedEvidence::At(event);
  return exit;
}

Arrival ToArrival(const Event& event, int attempt) {
  const Json& f = event.fields;
  return {event.t,
          attempt,
          SmallInt(f, "rank"),
          StringField(f, "source").value_or(""),
          StringField(f, "file").value_or(""),
          IntField(f, "line").value_or(0),
          StringField(f, "xxh3").value_or("")};
}

class Loader {
 public:
  Loader(const RunDir& run, const EvidenceFolder& folder) : run_(run), folder_(folder) {}

  Status LoadEvents() {
    Result<std::string> text = folder_.Read(run_.observed(), kMaxEventBytes);
    if (!text && text.error().code == ENOENT && !HoldsARun()) {
      return Wrap("'" + run_.root().native() + "' is no run directory", text.error());
    }
    if (!text) {
      Note({"observed.jsonl", 0}, text.error().message);
      return {};
    }
    EventFile file = ParseEvents(*text);
    for (const int line : file.damaged_lines) {
      Note({"observed.jsonl", line}, "no event record");
    }
    out_.events = std::move(file.events);
    for (Event& event : out_.events) {
      event.t = SaneTime(event.t.ns);
      Sort(event);
    }
    if (!out_.events.empty() && out_.events.front().name == events::kRunStarted) {
      out_.has_observed = true;
      out_.run_started = out_.events.front().fields;
      out_.samples = std::max<int64_t>(0, IntField(out_.run_started, "samples").value_or(0));
    }
    const auto by_time = [](const auto& a, const auto& b) { return a.t < b.t; };
    std::stable_sort(out_.pages.begin(), out_.pages.end(), by_time);
    std::stable_sort(out_.exits.begin(), out_.exits.end(), by_time);
    std::stable_sort(out_.arrivals.begin(), out_.arrivals.end(), by_time);
    for (const Arrival& arrival : out_.arrivals) {
      waiting_[arrival.file][arrival.xxh3].push_back(&arrival);
    }
    return {};
  }

  void LoadJob() {
    Result<JobConfig> job = JobConfigFromJson(Field(out_.run_started, "job"));
    if (!job) {
      if (const auto text = ReadOptional(folder_, run_.job_config(), kMaxLogBytes, &out_.damage)) {
        const Result<Json> json = ParseJson(*text);
        if (json) job = JobConfigFromJson(*json);
      }
    }
    if (job && IsSane(*job)) {
      out_.job = *job;
    } else if (job) {
      Note({"job.json", 0}, "the job's configuration holds impossible numbers");
    } else {
      Note({"job.json", 0}, job.error().message);
    }
  }

  void LoadCheckpoints() {
    const auto text = ReadOptional(folder_, run_.checkpoints(), kMaxEventBytes, &out_.damage);
    if (!text) return;
    out_.checkpoints.emplace();
    int number = 0;
    for (const std::string_view line : SplitLines(*text).complete) {
      ++number;
      const Result<Json> json = ParseJson(line);
      const auto t = json ? IntField(*json, "t_ns") : std::nullopt;
      if (!t) {
        Note({"checkpoints.jsonl", number}, "no inspection record");
        continue;
      }
      out_.checkpoints->push_back(ToRecord(*json, SaneTime(*t), number));
    }
    std::stable_sort(
        out_.checkpoints->begin(), out_.checkpoints->end(),
        [](const CheckpointRecord& a, const CheckpointRecord& b) { return a.t < b.t; });
  }

  void LoadAttempts() {
    for (const EvidenceFolder::Entry& entry : folder_.List(run_.root() / ".")) {
      const auto number = NumberAfter(entry.name, "attempt-");
      if (number && entry.directory) Attempt(*number);
    }
    for (const Event& event : out_.events) {
      const auto attempt = SmallInt(event.fields, "attempt");
      if (!attempt) continue;
      if (event.name == events::kAttemptStarted) Attempt(*attempt).started = event.t;
      if (event.name == events::kAttemptEnded) Attempt(*attempt).ended = event.t;
    }
    std::sort(out_.attempts.begin(), out_.attempts.end(),
              [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
    for (AttemptEvidence& attempt : out_.attempts) LoadAttempt(attempt);
  }

  ObservedEvidence Finish() {
    const auto text = [&](const std::filesystem::path& path) {
      return ReadOptional(folder_, path, kMaxLogBytes, &out_.damage).value_or("");
    };
    out_.launcher_stdout = text(run_.launcher_stdout());
    out_.launcher_stderr = text(run_.launcher_stderr());
    for (const auto& [file, by_hash] : waiting_) {
      if (!file.ends_with(".jsonl")) continue;
      for (const auto& [hash, arrivals] : by_hash) {
        for (const Arrival* arrival : arrivals) {
          Note({file, static_cast<int>(arrival->line)}, "a line that arrived is not in the file");
        }
      }
    }
    return std::move(out_);
  }

 private:
  // Whether something that only a run has lies there.
  bool HoldsARun() const {
    for (const EvidenceFolder::Entry& entry : folder_.List(run_.root() / ".")) {
      for (const std::filesystem::path& file : {run_.run_json(), run_.injected(), run_.seal()}) {
        if (entry.name == file.filename()) return true;
      }
    }
    return false;
  }

  void Note(Where where, std::string what) {
    out_.damage.push_back({std::move(where), std::move(what)});
  }

  // Records of a process need to say which; one that does not is damage.
  void Sort(const Event& event) {
    const bool page = event.name == events::kPageSampled;
    const bool exit = event.name == events::kProcessExited;
    if (event.name == events::kLineArrived) {
      out_.arrivals.push_back(ToArrival(event, SmallInt(event.fields, "attempt").value_or(0)));
    }
    if (!page && !exit) return;
    const auto attempt = SmallInt(event.fields, "attempt");
    const auto rank = SmallInt(event.fields, "rank");
    if (!attempt || !rank) {
      Note(ObservedEvidence::At(event), event.name + " without attempt or rank");
      return;
    }
    if (page) out_.pages.push_back(ToPage(event, *attempt, *rank));
    if (exit) out_.exits.push_back(ToExit(event, *attempt, *rank));
  }

  CheckpointRecord ToRecord(const Json& json, MonoTime t, int number) {
    CheckpointRecord record;
    record.t = t;
    record.attempt = SmallInt(json, "attempt").value_or(0);
    record.reason = StringField(json, "reason").value_or("");
    record.rank = SmallInt(json, "rank");
    record.where = {"checkpoints.jsonl", number};
    for (const Json& file : Field(json, "files")) {
      record.files.push_back(
          {StringField(file, "name").value_or(""), IntField(file, "bytes").value_or(0)});
    }
    for (const Json& c : Field(json, "checkpoints")) {
      CheckpointRecord::Checkpoint checkpoint;
      checkpoint.step = SaneStep(IntField(c, "step").value_or(0));
      checkpoint.name = StringField(c, "name").value_or("");
      checkpoint.published = BoolField(c, "published").value_or(false);
      checkpoint.complete = BoolField(c, "complete").value_or(false);
      checkpoint.verified = BoolField(c, "verified").value_or(false);
      checkpoint.why = StringField(c, "why").value_or("");
      checkpoint.file_xxh3 = StringField(c, "file_xxh3").value_or("");
      checkpoint.weights = StringField(c, "weights").value_or("");
      checkpoint.optimizer = StringField(c, "optimizer").value_or("");
      for (const Json& digest : Field(c, "rng")) {
        checkpoint.rng.push_back(digest.is_string() ? digest.get<std::string>() : "");
      }
      record.checkpoints.push_back(std::move(checkpoint));
    }
    return record;
  }

  AttemptEvidence& Attempt(int number) {
    for (AttemptEvidence& attempt : out_.attempts) {
      if (attempt.attempt == number) return attempt;
    }
    out_.attempts.push_back({});
    out_.attempts.back().attempt = number;
    return out_.attempts.back();
  }

  void LoadAttempt(AttemptEvidence& attempt) {
    const int k = attempt.attempt;
    attempt.launcher = Log(run_.launcher_log(k), k, std::nullopt);
    for (const EvidenceFolder::Entry& entry : folder_.List(run_.attempt(k))) {
      if (!entry.directory) continue;
      if (const auto rank = NumberAfter(entry.name, "rank-")) {
        attempt.ranks.push_back(LoadProcess(run_.rank(k, *rank), k, *rank, std::nullopt));
      } else if (const size_t dot = entry.name.find('.'); dot != std::string::npos) {
        const auto owner = NumberAfter(std::string_view(entry.name).substr(0, dot), "worker-");
        const auto worker = NumberAfter(std::string_view(entry.name).substr(dot), ".");
        if (owner && worker) {
          attempt.workers.push_back(
              LoadProcess(run_.worker(k, *owner, *worker), k, *owner, worker));
        }
      }
    }
    const auto order = [](const ProcessEvidence& a, const ProcessEvidence& b) {
      return std::pair(a.rank, a.worker) < std::pair(b.rank, b.worker);
    };
    std::sort(attempt.ranks.begin(), attempt.ranks.end(), order);
    std::sort(attempt.workers.begin(), attempt.workers.end(), order);
  }

  ProcessEvidence LoadProcess(const std::filesystem::path& folder, int attempt, int rank,
                              std::optional<int> worker) {
    std::vector<Damage>* damage = &out_.damage;
    const auto text = [&](const char* name) {
      return ReadOptional(folder_, folder / name, kMaxLogBytes, damage).value_or("");
    };
    ProcessEvidence process;
    process.attempt = attempt;
    process.rank = rank;
    process.worker = worker;
    process.folder = folder_.Relative(folder);
    process.log = Log(folder / kRankLog, attempt, rank);
    process.stdout_text = text(kRankStdout);
    process.stderr_text = text(kRankStderr);
    process.stacks = text(kRankStacks);
    process.page = ReadPage(folder_, folder / kRankPage, damage);
    if (worker) return process;
    process.ledger = ReadRankLedger(folder_, folder / kRankLedger, damage);
    if (process.ledger &&
        (process.ledger->header.rank != rank || process.ledger->header.attempt != attempt)) {
      Note({process.ledger->where}, "the ledger of another rank or attempt");
      process.ledger.reset();
    }
    process.weights_start = ReadWeights(folder_, folder / kRankWeightsStart, damage);
    process.weights_end = ReadWeights(folder_, folder / kRankWeightsEnd, damage);
    return process;
  }

  // Arrivals are matched by content and not by line number: when a line was taken out, those behind
  // it still have their time.
  std::vector<LogLine> Log(const std::filesystem::path& path, int attempt,
                           std::optional<int> writer) {
    std::vector<std::string> hashes;
    std::vector<LogLine> lines = ReadLog(folder_, path, attempt, writer, &out_.damage, &hashes);
    const auto by_hash = waiting_.find(folder_.Relative(path));
    if (by_hash == waiting_.end()) return lines;
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto arrivals = by_hash->second.find(hashes[i]);
      if (arrivals == by_hash->second.end() || arrivals->second.empty()) continue;
      lines[i].arrived = arrivals->second.front()->t;
      arrivals->second.pop_front();
    }
    return lines;
  }

  const RunDir& run_;
  const EvidenceFolder& folder_;
  ObservedEvidence out_;
  // file -> hash of the line -> arrivals that no line was found for yet
  std::map<std::string, std::map<std::string, std::deque<const Arrival*>>> waiting_;
};

}  // namespace

std::optional<int64_t> CheckpointRecord::NewestVerified() const {
  std::optional<int64_t> newest;
  for (const Checkpoint& c : checkpoints) {
    if (c.verified) newest = std::max(newest.value_or(c.step), c.step);
  }
  return newest;
}

const CheckpointRecord::Checkpoint* CheckpointRecord::Find(int64_t step) const {
  for (const Checkpoint& c : checkpoints) {
    if (c.step == step) return &c;
  }
  return nullptr;
}

const LedgerStep* RankLedger::Find(uint64_t step) const {
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    if (it->step == step) return &*it;
  }
  return nullptr;
}

const ProcessEvidence* AttemptEvidence::rank(int r) const {
  for (const ProcessEvidence& process : ranks) {
    if (process.rank == r) return &process;
  }
  return nullptr;
}

std::vector<const Event*> ObservedEvidence::Named(std::string_view event) const {
  std::vector<const Event*> out;
  for (const Event& e : events) {
    if (e.name == event) out.push_back(&e);
  }
  return out;
}

const Event* ObservedEvidence::First(std::string_view event) const {
  for (const Event& e : events) {
    if (e.name == event) return &e;
  }
  return nullptr;
}

const AttemptEvidence* ObservedEvidence::attempt(int k) const {
  for (const AttemptEvidence& a : attempts) {
    if (a.attempt == k) return &a;
  }
  return nullptr;
}

const Damage* ObservedEvidence::Unreadable(std::string_view file) const {
  for (const Damage& d : damage) {
    if (d.where.file == file && d.where.line == 0) return &d;
  }
  return nullptr;
}

std::vector<const LogLine*> ObservedEvidence::AllLines() const {
  std::vector<const LogLine*> lines;
  for (const AttemptEvidence& a : attempts) {
    for (const LogLine& line : a.launcher) lines.push_back(&line);
    for (const ProcessEvidence& rank : a.ranks) {
      for (const LogLine& line : rank.log) lines.push_back(&line);
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const LogLine* a, const LogLine* b) { return a->when() < b->when(); });
  return lines;
}

Result<ObservedEvidence> LoadObserved(const RunDir& run) {
  Result<EvidenceFolder> folder = EvidenceFolder::Open(run.root());
  if (!folder) return tl::unexpected<Error>(folder.error());
  Loader loader(run, *folder);
  SHAKEDOWN_TRY(loader.LoadEvents());
  loader.LoadJob();
  loader.LoadCheckpoints();
  loader.LoadAttempts();
  return loader.Finish();
}

}  // namespace shakedown
