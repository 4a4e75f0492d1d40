#include "tests/analysis/diagnosis/observed_builder.h"

#include <algorithm>

namespace shakedown::test_support {
namespace {

MonoTime At(double ms) { return MonoTime{1'000'000'000 + static_cast<int64_t>(ms * 1e6)}; }

void SetHow(const std::string& how, Json& fields) {
  if (how.starts_with("SIG")) {
    fields["signal"] = how;
  } else {
    fields["code"] = std::stoi(how);
  }
}

}  // namespace

ObservedBuilder::ObservedBuilder(int ranks) : ranks_(ranks) {
  evidence_.has_observed = true;
  evidence_.job = JobConfig{};
  evidence_.job->ranks = ranks;
  evidence_.job->collective_timeout = std::chrono::seconds(5);
  Event(events::kRunStarted, 0, Json::object());
  Attempt(0, 100);
}

AttemptEvidence& ObservedBuilder::attempt(int k) {
  for (AttemptEvidence& attempt : evidence_.attempts) {
    if (attempt.attempt == k) return attempt;
  }
  std::abort();
}

ProcessEvidence& ObservedBuilder::rank(int k, int r) {
  return attempt(k).ranks.at(static_cast<size_t>(r));
}

ObservedBuilder& ObservedBuilder::Attempt(int k, double ms) {
  AttemptEvidence& attempt = evidence_.attempts.emplace_back();
  attempt.attempt = k;
  attempt.started = At(ms);
  for (int r = 0; r < ranks_; ++r) {
    ProcessEvidence& process = attempt.ranks.emplace_back();
    process.attempt = k;
    process.rank = r;
    process.folder = "attempt-" + std::to_string(k) + "/rank-" + std::to_string(r);
  }
  return Event(events::kAttemptStarted, ms, {{"attempt", k}});
}

ObservedBuilder& ObservedBuilder::Event(const std::string& name, double ms, const Json& fields) {
  const int line = static_cast<int>(evidence_.events.size()) + 1;
  evidence_.events.push_back({At(ms), name, fields, line});
  return *this;
}

ObservedBuilder& ObservedBuilder::Page(int k, int r, double ms, const std::string& point,
                                       int64_t step, int64_t entered, int64_t enqueued) {
  Event(events::kPageSampled, ms, {{"attempt", k}, {"rank", r}});
  PageSample page;
  page.t = At(ms);
  page.attempt = k;
  page.rank = r;
  page.lanes["main"] = {point, step, static_cast<int64_t>(evidence_.pages.size())};
  page.last_step = step - 1;
  page.collectives_entered = entered;
  page.collectives_enqueued = enqueued;
  page.where = {"observed.jsonl", static_cast<int>(evidence_.events.size())};
  evidence_.pages.push_back(page);
  return *this;
}

ObservedBuilder& ObservedBuilder::WorkerPage(int k, int r, int worker, double ms,
                                             const std::string& point, int64_t batch) {
  Page(k, r, ms, point, batch, 0, 0);
  evidence_.pages.back().worker = worker;
  return *this;
}

ObservedBuilder& ObservedBuilder::Exit(int k, int r, double ms, const std::string& how,
                                       const std::string& by, const std::string& source) {
  Json fields = {{"attempt", k}, {"rank", r}, {"role", "rank"}};
  SetHow(how, fields);
  Event(events::kProcessExited, ms, fields);
  ProcessExit exit;
  exit.t = At(ms);
  exit.attempt = k;
  exit.role = "rank";
  exit.rank = r;
  exit.pid = 4000 + 100 * k + r;
  if (how.starts_with("SIG")) {
    exit.signal = how;
  } else {
    exit.code = std::stoi(how);
  }
  exit.source = source;
  exit.where = {"observed.jsonl", static_cast<int>(evidence_.events.size())};
  evidence_.exits.push_back(exit);
  if (by.empty()) return *this;
  Json said = {{"rank", r}, {"pid", exit.pid}, {"by", by}};
  SetHow(how, said);
  return LauncherLine(k, ms + 1, exit.failed() ? "ERROR" : "INFO", "rank.exited", said);
}

ObservedBuilder& ObservedBuilder::Line(int k, int r, double ms, const std::string& level,
                                       const std::string& event, const Json& fields) {
  ProcessEvidence& process = rank(k, r);
  LogLine line;
  line.attempt = k;
  line.writer = r;
  line.where = {process.folder + "/log.jsonl", static_cast<int>(process.log.size()) + 1};
  line.t = At(ms);
  line.arrived = At(ms + 2);
  line.level = level;
  line.event = event;
  line.rank = r;
  line.step = IntField(fields, "step");
  line.message = StringField(fields, "message").value_or("words of " + event);
  line.fields = fields;
  process.log.push_back(line);
  return *this;
}

ObservedBuilder& ObservedBuilder::LauncherLine(int k, double ms, const std::string& level,
                                               const std::string& event, const Json& fields) {
  AttemptEvidence& a = attempt(k);
  LogLine line;
  line.attempt = k;
  line.where = {"attempt-" + std::to_string(k) + "/launcher.jsonl",
                static_cast<int>(a.launcher.size()) + 1};
  line.t = At(ms);
  line.arrived = At(ms + 2);
  line.level = level;
  line.event = event;
  if (const auto spoken_of = IntField(fields, "rank")) line.rank = static_cast<int>(*spoken_of);
  line.message = "words of " + event;
  line.fields = fields;
  a.launcher.push_back(line);
  return *this;
}

ObservedBuilder& ObservedBuilder::Printed(int k, int r, const std::string& text) {
  rank(k, r).stderr_text += text;
  return *this;
}

ObservedBuilder& ObservedBuilder::NoProgress(double ms) {
  return Event(events::kNoProgress, ms, {{"last_step", 38}, {"waited_ms", 1060}});
}

ObservedBuilder& ObservedBuilder::Stack(int k, int r, double ms, const std::string& text) {
  rank(k, r).stacks = text;
  return Event(events::kStacksCollected, ms, {{"attempt", k}, {"rank", r}});
}

ObservedBuilder& ObservedBuilder::JobExit(double ms, int code) {
  return Event(events::kJobExited, ms, {{"code", code}, {"source", "waitid"}});
}

ObservedBuilder& ObservedBuilder::RunEnded(double ms, const std::string& how) {
  return Event(events::kRunEnded, ms, {{"how", how}, {"reason", ""}});
}

ObservedEvidence ObservedBuilder::Build() const {
  ObservedEvidence evidence = evidence_;
  const auto by_time = [](const auto& a, const auto& b) { return a.t < b.t; };
  std::stable_sort(evidence.events.begin(), evidence.events.end(), by_time);
  std::stable_sort(evidence.pages.begin(), evidence.pages.end(), by_time);
  std::stable_sort(evidence.exits.begin(), evidence.exits.end(), by_time);
  return evidence;
}

namespace {

// Two buckets a step: collectives 2s-1 and 2s belong to step s.
void RunSteps(ObservedBuilder& job, int attempt, int ranks, double ms, int from, int to) {
  for (int step = from; step <= to; step += 10) {
    for (int r = 0; r < ranks; ++r) {
      const int64_t collectives = 2 * (step - from + 1);
      job.Page(attempt, r, ms + 20 * (step - from) + 0.1 * r, "step.end", step, collectives,
               collectives);
    }
  }
}

// Attempt 1, from checkpoint 30 to the end.
ObservedBuilder& Recover(ObservedBuilder& job, int ranks, double ms) {
  job.LauncherLine(0, ms - 20, "WARNING", "restart.scheduled", {{"attempt", 1}});
  job.Attempt(1, ms);
  RunSteps(job, 1, ranks, ms + 200, 31, 60);
  for (int r = 0; r < ranks; ++r) job.Exit(1, r, ms + 900 + r, "0", "itself");
  return job.JobExit(ms + 950).RunEnded(ms + 1000);
}

void PeersLose(ObservedBuilder& job, int ranks, int rank, double ms) {
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    job.Line(0, r, ms + r, "ERROR", "peer.lost", {{"step", 39}, {"phase", "collective"}});
    job.Exit(0, r, ms + 10 + r, "65", "itself");
  }
}

constexpr char kWaitingStack[] =
    "PID 4000 - process\nTID 4000:\n"
    "#0  0x00007f01 pthread_cond_wait@@GLIBC_2.3.2\n"
    "#1  0x00007f02 std::condition_variable::wait(std::unique_lock<std::mutex>&)\n"
    "#2  0x00007f03 c10d::Reducer::finalize_backward()\n";
constexpr char kStuckStack[] =
    "PID 4001 - process\nTID 4001:\n"
    "#0  0x00007f01 clock_nanosleep@@GLIBC_2.17\n"
    "#1  0x00007f02 shakedown::probe::internal::Matched(shakedown::Point, unsigned int)\n"
    "#2  0x00007f03 shakedown::ProcessGroup::allreduce(std::vector<at::Tensor>&)\n"
    "#3  0x00007f04 c10d::Reducer::all_reduce_bucket(c10d::Reducer::Bucket&)\n";

}  // namespace

ObservedBuilder Healthy(int ranks) {
  ObservedBuilder job(ranks);
  RunSteps(job, 0, ranks, 300, 1, 60);
  for (int r = 0; r < ranks; ++r) job.Exit(0, r, 1600 + r, "0", "itself");
  job.JobExit(1650).RunEnded(1700);
  return job;
}

ObservedBuilder RankKilled(int ranks, int rank) {
  ObservedBuilder job(ranks);
  RunSteps(job, 0, ranks, 300, 1, 38);
  job.Page(0, rank, 1100, "collective.enter", 39, 77, 76);
  job.Exit(0, rank, 1110, "SIGKILL", "itself");
  PeersLose(job, ranks, rank, 1120);
  job.LauncherLine(0, 1160, "ERROR", "attempt.failed",
                   {{"attempt", 0}, {"first", rank}, {"reason", "signal"}});
  Recover(job, ranks, 1200);
  return job;
}

ObservedBuilder RankNotJoined(int ranks, int rank) {
  ObservedBuilder job(ranks);
  RunSteps(job, 0, ranks, 300, 1, 38);
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) {
      job.Page(0, r, 1100, "collective.enter", 39, 77, 76);
    } else {
      job.Page(0, r, 1101, "collective.enqueued", 39, 78, 78);
    }
  }
  job.NoProgress(2160);
  for (int r = 0; r < ranks; ++r) {
    job.Stack(0, r, 2300, r == rank ? kStuckStack : kWaitingStack);
  }
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    job.Line(0, r, 6101 + r, "ERROR", "collective.timeout",
             {{"step", 39}, {"collective", 77}, {"timeout_ms", 5000}, {"waited_ms", 5000}});
    // Survivors move on once they give up.
    job.Page(0, r, 6103 + r, "teardown.begin", 39, 78, 78);
    job.Exit(0, r, 6110 + r, "66", "itself");
  }
  job.Exit(0, rank, 6150, "SIGKILL", "launcher");
  job.LauncherLine(0, 6160, "ERROR", "attempt.failed",
                   {{"attempt", 0}, {"first", rank == 0 ? 1 : 0}, {"reason", "exit"}});
  Recover(job, ranks, 6300);
  return job;
}

ObservedBuilder HangWatchdog(int ranks, int rank) {
  ObservedBuilder job(ranks);
  RunSteps(job, 0, ranks, 300, 1, 38);
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) {
      job.Page(0, r, 1100, "collective.enter", 39, 77, 76);
    } else {
      job.Page(0, r, 1101, "collective.enqueued", 39, 78, 78);
    }
  }
  Json everyone = Json::array();
  for (int r = 0; r < ranks; ++r) everyone.push_back(r);
  job.LauncherLine(0, 2100, "ERROR", "watchdog.fired",
                   {{"limit_ms", 1000}, {"last_step", 38}, {"behind", everyone}});
  for (int r = 0; r < ranks; ++r) job.Exit(0, r, 2105 + r, "SIGKILL", "launcher");
  job.LauncherLine(0, 2160, "ERROR", "attempt.failed", {{"attempt", 0}, {"reason", "watchdog"}});
  Recover(job, ranks, 2300);
  return job;
}

ObservedBuilder NeverReturns(int ranks, int rank) {
  ObservedBuilder job(ranks);
  RunSteps(job, 0, ranks, 300, 1, 38);
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) {
      job.Page(0, r, 1100, "collective.enqueued", 39, 77, 77);
    } else {
      job.Page(0, r, 1102, "collective.enqueued", 39, 78, 78);
    }
  }
  job.NoProgress(2160);
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    job.Line(0, r, 6101 + r, "ERROR", "collective.timeout", {{"step", 39}, {"collective", 78}});
    job.Exit(0, r, 6110 + r, "66", "itself");
  }
  job.Exit(0, rank, 6150, "SIGKILL", "launcher");
  job.LauncherLine(0, 6160, "ERROR", "attempt.failed", {{"attempt", 0}, {"reason", "exit"}});
  Recover(job, ranks, 6300);
  return job;
}

ObservedBuilder DiskFull(int ranks, int rank) {
  ObservedBuilder job = Healthy(ranks);
  job.Line(0, rank, 720, "ERROR", "checkpoint.failed",
           {{"step", 20}, {"checkpoint", 20}, {"operation", "write"}, {"errno", 28}});
  return job;
}

ObservedBuilder SlowWorker(int ranks, int rank, int worker) {
  ObservedBuilder job(ranks);
  RunSteps(job, 0, ranks, 300, 1, 10);
  job.WorkerPage(0, rank, worker, 505, "worker.read", 12);
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) {
      job.Page(0, r, 510, "data.next", 12, 22, 22);
    } else {
      job.Page(0, r, 512, "collective.enqueued", 12, 24, 24);
    }
  }
  job.Line(0, rank, 1010, "WARNING", "data.slow",
           {{"step", 12}, {"worker", worker}, {"batch", 12}, {"waited_ms", 500}});
  job.Line(0, rank, 1510, "WARNING", "worker.replaced",
           {{"step", 12}, {"worker", worker}, {"batch", 12}, {"deadline_ms", 1000}});
  job.WorkerPage(0, rank, worker, 1530, "worker.start", 12);
  RunSteps(job, 0, ranks, 1550, 12, 60);
  for (int r = 0; r < ranks; ++r) job.Exit(0, r, 2900 + r, "0", "itself");
  job.JobExit(2950).RunEnded(3000);
  return job;
}

ObservedBuilder OutOfMemory(int ranks, int rank) {
  ObservedBuilder job = Healthy(ranks);
  job.Line(0, rank, 600, "ERROR", "memory.exhausted",
           {{"step", 15}, {"requested_bytes", 4096}, {"in_use_bytes", 1 << 20}});
  job.Line(0, rank, 610, "WARNING", "memory.split", {{"step", 15}, {"parts", 2}});
  return job;
}

}  // namespace shakedown::test_support
