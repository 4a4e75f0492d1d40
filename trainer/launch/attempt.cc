#include "trainer/launch/attempt.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "harness/base/log.h"
#include "harness/wire/log_events.h"
#include "harness/wire/run_dir.h"
#include "trainer/defects/defect.h"
#include "trainer/launch/rank_process.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

// From the first failure: time for the other ranks to notice and log it by themselves. Their
// reports are what people read later; a peer's death takes them a few milliseconds, on a busy
// machine more.
constexpr Nanoseconds kNoticeGrace = std::chrono::seconds(1);
// When all have given up waiting and one is left that does nothing for so long, it is the one that
// they waited for.
constexpr Nanoseconds kStillTime = Milliseconds(100);
// After SIGKILL only a process that hangs in the kernel still lives.
constexpr Nanoseconds kUnkillable = std::chrono::seconds(10);
// Heartbeats are memory, not events: they are read so many times per limit.
constexpr int kSamplesPerLimit = 20;

// A private directory for the store's file. Fresh for each attempt: a store with an old attempt's
// keys would let ranks meet the dead.
class StoreDirectory {
 public:
  static Result<StoreDirectory> Make() {
    const char* variable = std::getenv("TMPDIR");
    std::string path = variable != nullptr && *variable != '\0' ? variable : "/tmp";
    path += "/shakedown-store-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return FailErrno("make the store's directory", path);
    return StoreDirectory(path);
  }
  StoreDirectory(StoreDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  StoreDirectory& operator=(StoreDirectory&&) = delete;
  ~StoreDirectory() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
    if (error) LogError("cannot remove '" + path_.native() + "': " + error.message());
  }
  fs::path file() const { return path_ / "store"; }

 private:
  explicit StoreDirectory(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

class Attempt {
 public:
  Attempt(const LaunchOptions& options, const AttemptPlan& plan, StopSignals& stop, LaunchLog& log,
          std::optional<ForkServer>& server)
      : job_(options.job),
        options_(options),
        plan_(plan),
        stop_(stop),
        log_(log),
        server_(server) {}
  // Nothing that was started is left, whatever went wrong.
  ~Attempt();

  Status StartAll(const fs::path& store_file);
  Result<AttemptResult> Watch();

 private:
  // kRunning: all is well. kNoticing: one has failed; the others may still say so. kStopping:
  // SIGTERM was sent on request. kKilled: SIGKILL was sent to what was left.
  enum class Phase { kRunning, kNoticing, kStopping, kKilled };

  struct Rank {
    RankProcess process;
    std::optional<RankEnd> end;
    int64_t step() const { return process.heartbeat().step(); }
  };
  // The last rank that runs, looked at to see whether it still does something.
  struct LastOne {
    MonoTime since;
    std::optional<Activity> activity;
  };

  size_t running() const {
    return static_cast<size_t>(
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.end; }));
  }
  // Numbers of the running ranks for which `wanted` holds.
  template <typename Wanted>
  std::vector<int> RunningRanks(Wanted wanted) const {
    std::vector<int> out;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].end && wanted(ranks_[r])) out.push_back(static_cast<int>(r));
    }
    return out;
  }

  void AwaitNews(MonoTime until);
  void TakeStopSignals();
  void Reap();
  void Record(int rank, const WaitStatus& status, MonoTime now);
  MonoTime CheckTimers();
  MonoTime CheckProgress(MonoTime now);
  MonoTime CheckNotice(MonoTime now);
  bool LastOneIsStill(MonoTime now);
  void FireWatchdog(MonoTime now);
  void FireStartupTimeout(MonoTime now);
  void KillTheRest();
  AttemptResult Conclude();

  const JobConfig& job_;
  const LaunchOptions& options_;
  const AttemptPlan& plan_;
  StopSignals& stop_;
  LaunchLog& log_;
  std::optional<ForkServer>& server_;

  std::vector<Rank> ranks_;
  Phase phase_ = Phase::kRunning;
  bool stopped_ = false;
  MonoTime deadline_;  // of the phase; none in kRunning
  MonoTime started_;
  std::optional<MonoTime> all_ready_;
  MonoTime advanced_;  // when the ranks' steps last changed
  std::vector<int64_t> last_steps_;
  std::optional<LastOne> last_one_;
  AttemptFacts facts_;
};

Attempt::~Attempt() {
  for (Rank& rank : ranks_) {
    if (!rank.end) rank.process.Signal(SIGKILL);
  }
  const MonoTime until = MonoNow() + kUnkillable;
  while (running() > 0 && MonoNow() < until) {
    AwaitNews(until);
    Reap();
  }
}

Status Attempt::StartAll(const fs::path& store_file) {
  started_ = MonoNow();
  log_.Write(EventLevel::kInfo, log_events::kAttemptStarted,
             "attempt " + std::to_string(plan_.number) + " starts " + std::to_string(job_.ranks) +
                 " ranks",
             {{"attempt", plan_.number},
              {"ranks", job_.ranks},
              {"store", store_file.native()},
              {"restarts_left", plan_.restarts_left}},
             started_);
  ranks_.reserve(static_cast<size_t>(job_.ranks));
  for (int r = 0; r < job_.ranks; ++r) {
    Result<RankProcess> process = RankProcess::Start(
        options_, {r, plan_.number, plan_.micro_batch_parts, plan_.run_id, store_file}, server_);
    if (!process) return Wrap("rank " + std::to_string(r), process.error());
    log_.Write(EventLevel::kInfo, log_events::kRankSpawned,
               "rank " + std::to_string(r) + " started", {{"rank", r}, {"pid", process->pid()}});
    ranks_.push_back({*std::move(process), std::nullopt});
  }
  last_steps_.assign(ranks_.size(), 0);
  return {};
}

Result<AttemptResult> Attempt::Watch() {
  while (true) {
    TakeStopSignals();
    Reap();
    if (running() == 0) return Conclude();
    const MonoTime next = CheckTimers();
    if (phase_ == Phase::kKilled && MonoNow() >= deadline_) {
      return Fail("ranks do not end on SIGKILL: they hang in the kernel; look at the storage and " +
                  std::string("the devices that they use"));
    }
    AwaitNews(next);
  }
}

// Until a rank ends, a stop signal comes, or `until`.
void Attempt::AwaitNews(MonoTime until) {
  std::vector<pollfd> fds = {{stop_.fd(), POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    if (!rank.end) fds.push_back({rank.process.pidfd(), POLLIN, 0});
  }
  const int64_t ns = std::max<int64_t>((until - MonoNow()).count(), 0);
  const timespec timeout{static_cast<time_t>(ns / 1'000'000'000),
                         static_cast<long>(ns % 1'000'000'000)};
  if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) < 0) SHAKEDOWN_ASSERT(errno == EINTR);
}

// The first asks for a graceful end, the second for an immediate one.
void Attempt::TakeStopSignals() {
  while (const std::optional<int> signal = stop_.Take()) {
    log_.Write(EventLevel::kWarning, log_events::kTermReceived,
               "told to stop by " + SignalName(*signal), {{"signal", SignalName(*signal)}});
    if (phase_ == Phase::kKilled) {
      stopped_ = true;
    } else if (stopped_) {
      KillTheRest();
    } else {
      stopped_ = true;
      phase_ = Phase::kStopping;
      deadline_ = MonoNow() + job_.term_grace;
      for (Rank& rank : ranks_) {
        if (!rank.end) rank.process.Signal(SIGTERM);
      }
    }
  }
}

void Attempt::Reap() {
  const MonoTime now = MonoNow();
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].end) continue;
    const Result<std::optional<WaitStatus>> status = TryWait(ranks_[r].process.pidfd());
    SHAKEDOWN_ASSERT(status.has_value());  // it is our child, and nobody else waits for it
    if (*status) Record(static_cast<int>(r), **status, now);
  }
}

void Attempt::Record(int rank, const WaitStatus& status, MonoTime now) {
  Rank& ended = ranks_[static_cast<size_t>(rank)];
  const bool by_launcher = status.signaled() && status.signal() == ended.process.sent();
  ended.end = RankEnd{rank, status, by_launcher, now, ended.step()};
  facts_.ends.push_back(*ended.end);
  Json fields = {{"rank", rank}, {"pid", ended.process.pid()}};
  status.AddTo(fields);
  if (status.signaled() && Planted(Defect::kHidesSignal)) {
    fields.erase("signal");
    fields["code"] = 1;
  }
  fields["by"] = by_launcher ? "launcher" : "itself";
  log_.Write(status.ok() ? EventLevel::kInfo : EventLevel::kError, log_events::kRankExited,
             "rank " + std::to_string(rank) + " ended: " + status.ToString() +
                 (by_launcher ? ", sent by the launcher" : ""),
             std::move(fields), now);
  if (phase_ == Phase::kRunning && !status.ok()) {
    phase_ = Phase::kNoticing;
    deadline_ = now + kNoticeGrace;
  }
}

// Does what is due and returns when the next thing will be.
MonoTime Attempt::CheckTimers() {
  const MonoTime now = MonoNow();
  if (phase_ == Phase::kRunning) return CheckProgress(now);
  if (phase_ == Phase::kNoticing) return CheckNotice(now);
  if (phase_ == Phase::kStopping && now >= deadline_) KillTheRest();
  return deadline_;
}

MonoTime Attempt::CheckProgress(MonoTime now) {
  constexpr MonoTime kNever{INT64_MAX / 2};
  std::vector<int64_t> steps;
  for (const Rank& rank : ranks_) steps.push_back(rank.step());
  if (steps != last_steps_) {
    last_steps_ = std::move(steps);
    advanced_ = now;
  }
  if (!all_ready_) {
    const bool ready = std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
      return rank.end || rank.process.heartbeat().ready();
    });
    if (ready) {
      all_ready_ = now;
      advanced_ = now;
    }
  }
  if (all_ready_ && !job_.watchdog) return kNever;
  Nanoseconds shortest = all_ready_ ? *job_.watchdog : job_.startup_timeout;
  const MonoTime limit = (all_ready_ ? advanced_ : started_) + shortest;
  if (now >= limit) {
    all_ready_ ? FireWatchdog(now) : FireStartupTimeout(now);
    return deadline_;
  }
  if (job_.watchdog) shortest = std::min(shortest, *job_.watchdog);
  const Nanoseconds period =
      std::clamp<Nanoseconds>(shortest / kSamplesPerLimit, Milliseconds(1), Milliseconds(100));
  return std::min(limit, now + period);
}

void Attempt::FireWatchdog(MonoTime now) {
  int64_t least = INT64_MAX;
  for (const Rank& rank : ranks_) {
    if (!rank.end) least = std::min(least, rank.step());
  }
  facts_.trigger = AttemptTrigger::kWatchdog;
  facts_.suspects = RunningRanks([least](const Rank& rank) { return rank.step() <= least; });
  const double waited_ms = ToMs(now - advanced_);
  log_.Write(EventLevel::kError, log_events::kWatchdogFired,
             "no rank completed a step for " + std::to_string(static_cast<int64_t>(waited_ms)) +
                 " ms; the group stands at step " + std::to_string(least),
             {{"limit_ms", ToMs(*job_.watchdog)},
              {"waited_ms", waited_ms},
              {"last_step", least},
              {"behind", facts_.suspects}},
             now);
  KillTheRest();
}

void Attempt::FireStartupTimeout(MonoTime now) {
  facts_.trigger = AttemptTrigger::kStartup;
  facts_.suspects =
      RunningRanks([](const Rank& rank) { return !rank.process.heartbeat().ready(); });
  const double waited_ms = ToMs(now - started_);
  log_.Write(EventLevel::kError, log_events::kStartupTimeout,
             std::to_string(facts_.suspects.size()) + " ranks were not ready after " +
                 std::to_string(static_cast<int64_t>(waited_ms)) + " ms",
             {{"limit_ms", ToMs(job_.startup_timeout)},
              {"waited_ms", waited_ms},
              {"missing", facts_.suspects}},
             now);
  KillTheRest();
}

MonoTime Attempt::CheckNotice(MonoTime now) {
  if (now >= deadline_ || LastOneIsStill(now)) KillTheRest();
  return last_one_ && phase_ == Phase::kNoticing
             ? std::min(deadline_, last_one_->since + kStillTime)
             : deadline_;
}

// Whether the one rank that is left has done nothing for kStillTime, while all others only report
// that they gave up waiting. One that writes (D) or runs may be about to report something, too.
bool Attempt::LastOneIsStill(MonoTime now) {
  const bool gave_up = std::all_of(facts_.ends.begin(), facts_.ends.end(),
                                   [](const RankEnd& end) { return IsConsequence(end.status); });
  if (!gave_up || running() != 1) return false;
  if (last_one_ && now < last_one_->since + kStillTime) return false;
  const auto left =
      std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.end; });
  const std::optional<Activity> activity = ActivityOf(left->process.pid());
  const bool still = last_one_ && activity && activity == last_one_->activity &&
                     activity->state != 'R' && activity->state != 'D';
  last_one_ = LastOne{now, activity};
  return still;
}

// SIGKILL and nothing gentler: a stuck rank does not answer SIGTERM, and each moment counts against
// recovery.
void Attempt::KillTheRest() {
  Reap();  // what has ended by itself keeps its own status
  phase_ = Phase::kKilled;
  deadline_ = MonoNow() + kUnkillable;
  for (Rank& rank : ranks_) {
    if (!rank.end) rank.process.Signal(SIGKILL);
  }
}

AttemptResult Attempt::Conclude() {
  const bool failed = facts_.trigger != AttemptTrigger::kRankEnded ||
                      std::any_of(facts_.ends.begin(), facts_.ends.end(),
                                  [](const RankEnd& end) { return !end.status.ok(); });
  AttemptResult result;
  result.how = stopped_ ? AttemptResult::How::kStopped
               : failed ? AttemptResult::How::kFailed
                        : AttemptResult::How::kSucceeded;
  result.facts = std::move(facts_);
  return result;
}

}  // namespace

Result<AttemptResult> RunAttempt(const LaunchOptions& options, const AttemptPlan& plan,
                                 StopSignals& stop, LaunchLog& log,
                                 std::optional<ForkServer>& server) {
  const Result<StoreDirectory> store = StoreDirectory::Make();
  if (!store) return tl::unexpected(store.error());
  fs::path store_file = store->file();
  if (Planted(Defect::kKeepsStore)) {
    store_file = store_file.parent_path().parent_path() / "store";
  }
  Attempt attempt(options, plan, stop, log, server);
  SHAKEDOWN_TRY(attempt.StartAll(store_file));
  return attempt.Watch();
}

}  // namespace shakedown
