// shakedown-trainer: one rank of the reference job.
//   shakedown-trainer --config job.json --checkpoint-dir DIR
// The rest comes from the environment, as shakedown-launch or torchrun set it (README.md). The exit
// status says why the rank ended (harness/wire/exit_code.h).
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "harness/base/file.h"
#include "harness/wire/log_events.h"
#include "harness/wire/run_dir.h"
#include "harness/wire/schedule.h"
#include "injectors/probe/probe.h"
#include "trainer/checkpoint/select.h"
#include "trainer/config.h"
#include "trainer/data/sampler.h"
#include "trainer/defects/defect.h"
#include "trainer/fork_server/server.h"
#include "trainer/rank.h"

namespace shakedown {
namespace {

EventLog* terminating_log = nullptr;

// Gloo throws on threads of its own when the group has fallen apart; then nobody can catch it.
[[noreturn]] void OnTerminate() {
  std::string text = "terminated";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "an exception of unknown type";
  }
  if (terminating_log != nullptr) {
    terminating_log->Write(
        EventLevel::kError, log_events::kRankFailed, "an exception that nobody catches: " + text,
        {{"phase", nullptr}, {"error", text}, {"exit_code", int{kRankException}}});
  }
  ::_exit(kRankException);
}

// What a job forgets that daemonizes a helper, or dies before it cleans up (defects/catalog.def).
void LeaveProcess() {
  constexpr unsigned kLongerThanAnyRun = 600;
  if (::fork() != 0) return;
  ::setsid();
  ::close_range(0, ~0U, 0);
  ::clearenv();
  ::alarm(kLongerThanAnyRun);
  while (true) ::pause();
}
void LeaveTemporaryFile() {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error) / "left-XXXXXX";
  if (const int fd = ::mkstemp(path.data()); fd >= 0) ::close(fd);
}

// Ends the process without destructors: after a failure threads may wait for peers for ever, and
// after a success there is nothing left that they would do.
[[noreturn]] void End(LedgerWriter* ledger, RankResult result) {
  if (result.exit != kRankOk && Planted(Defect::kExitsZeroAfterFailure)) result.exit = kRankOk;
  if (result.exit == kRankOk && Planted(Defect::kExitsOneAfterSuccess))
    result.exit = kRankException;
  if (Planted(Defect::kLeavesProcess)) LeaveProcess();
  if (Planted(Defect::kLeavesTemporaryFile)) LeaveTemporaryFile();
  probe::Pass(Point::kExit, static_cast<uint32_t>(result.step));
  if (ledger != nullptr) {
    const Status written = ledger->Append(
        LedgerEnd{static_cast<uint64_t>(result.step), int32_t{result.exit}, MonoNow().ns});
    if (!written) std::fprintf(stderr, "shakedown-trainer: %s\n", written.error().message.c_str());
  }
  ::_exit(result.exit);
}

[[noreturn]] void EndFailed(EventLog& log, LedgerWriter* ledger, const char* phase, RankExit exit,
                            const Error& error) {
  log.Write(EventLevel::kError, log_events::kRankFailed, "the rank failed: " + error.message,
            {{"phase", phase}, {"error", error.message}, {"exit_code", int{exit}}});
  End(ledger, {exit, 0});
}

// What a Result holds, or the end of the rank.
template <typename T>
T OrEnd(Result<T> result, EventLog& log, LedgerWriter* ledger, const char* phase, RankExit exit) {
  if (!result) EndFailed(log, ledger, phase, exit, result.error());
  return std::move(*result);
}

// The first micro-batch of a step, by the numbers of data/sampler.h.
int64_t FirstBatch(const JobConfig& job, int64_t first_step, int64_t samples) {
  const bool resumed = first_step > 1;
  if (resumed && Planted(Defect::kSkipsBatch)) ++first_step;
  if (resumed && Planted(Defect::kRecordsPlannedIds)) ++first_step;
  if (resumed && Planted(Defect::kRepeatsBatch)) --first_step;
  if (const int64_t epoch = StepsPerEpoch(job, samples);
      first_step > epoch && Planted(Defect::kForgetsEpoch)) {
    first_step = (first_step - 1) % epoch + 1;
  }
  return BatchNumber(job, first_step, 0);
}

WorkerPoolOptions PoolOptions(const JobConfig& job, int rank, int64_t first_step, int64_t samples,
                              EventLog& log) {
  WorkerPoolOptions options;
  std::error_code error;  // /proc/self/exe is always there
  options.worker_binary = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() /
                          "shakedown-data-worker";
  options.job = job;
  options.rank = rank;
  options.first_batch = FirstBatch(job, first_step, samples);
  options.on_slow = [&log](int worker, int64_t batch, Nanoseconds waited) {
    log.Write(
        EventLevel::kWarning, log_events::kDataSlow,
        "data worker " + std::to_string(worker) + " is slow with batch " + std::to_string(batch),
        {{"worker", worker}, {"batch", batch}, {"waited_ms", ToMs(waited)}});
  };
  const int64_t deadline_ms = std::chrono::duration_cast<Milliseconds>(job.worker_deadline).count();
  options.on_replaced = [&log, deadline_ms](int worker, int64_t batch, Nanoseconds waited,
                                            int incarnation, std::string_view reason) {
    log.Write(
        EventLevel::kWarning, log_events::kWorkerReplaced,
        "data worker " + std::to_string(worker) + " is replaced (" + std::string(reason) + ")",
        {{"worker", worker},
         {"batch", batch},
         {"waited_ms", ToMs(waited)},
         {"deadline_ms", deadline_ms},
         {"incarnation", incarnation},
         {"reason", reason}});
  };
  options.on_died = [&log](int worker, int64_t batch, const WaitStatus& status) {
    Json fields{{"worker", worker}, {"batch", batch}};
    status.AddTo(fields);
    log.Write(EventLevel::kError, log_events::kWorkerDied,
              "data worker " + std::to_string(worker) + " ended (" + status.ToString() +
                  ") and is started anew",
              fields);
  };
  return options;
}

// Which checkpoint this rank would resume from. Before torch does anything, so that the data
// workers can start at once.
int64_t FindStep(int checkpoint_fd, int every, bool last_rank, EventLog& log,
                 LedgerWriter* ledger) {
  probe::Pass(Point::kResumeList, 0);
  const auto refused = [&log](int64_t step, const std::string& file, const std::string& reason) {
    log.Write(EventLevel::kWarning, log_events::kCheckpointRefused,
              "checkpoint " + std::to_string(step) + " is not used: " + reason,
              {{"checkpoint", step}, {"file", file}, {"reason", reason}});
  };
  const auto found =
      OrEnd(SelectCheckpoint(checkpoint_fd, refused), log, ledger, "resume", kRankCheckpoint);
  if (!found || Planted(Defect::kStartsFromZero)) return 0;
  // Whether there is an older one to act on is asked by the bug alone: it reads a whole checkpoint.
  const auto takes_older = [&](Defect defect) {
    return kDefect == defect && ReadCheckpoint(checkpoint_fd, found->step - every) &&
           Planted(defect);
  };
  if ((last_rank && takes_older(Defect::kRanksDisagree)) ||
      takes_older(Defect::kLoadsOlderCheckpoint)) {
    return found->step - every;
  }
  return found->step;
}

[[noreturn]] void Main(const std::vector<std::string>& arguments) {
  const auto environment = ReadRankEnvironment(::getenv);
  if (!environment) {
    std::fprintf(stderr, "shakedown-trainer: %s\n", environment.error().message.c_str());
    ::_exit(kRankUsage);
  }
  const std::filesystem::path& rank_dir = environment->rank_dir;
  const auto opened =
      EventLog::Open(rank_dir / kRankLog, Planted(Defect::kLogsWrongRank) ? 0 : environment->rank);
  if (!opened) {
    std::fprintf(stderr, "shakedown-trainer: %s\n", opened.error().message.c_str());
    ::_exit(kRankUsage);
  }
  EventLog& log = **opened;
  terminating_log = &log;
  std::set_terminate(OnTerminate);

  const RankFlags flags = OrEnd(ParseRankFlags(arguments), log, nullptr, "init", kRankUsage);
  const JobConfig job =
      OrEnd(ReadJob(flags.config, *environment), log, nullptr, "init", kRankUsage);
  const auto ledger = OrEnd(
      LedgerWriter::Create(rank_dir / kRankLedger,
                           {environment->rank, environment->world_size, environment->attempt}),
      log, nullptr, "init", kRankUsage);
  HeartbeatWriter heartbeat = OrEnd(HeartbeatWriter::Open(environment->heartbeat_fd), log,
                                    ledger.get(), "init", kRankUsage);
  // Half of the grace: who has not come to the end of a step by then is stuck, and the other half
  // is for those that save.
  const auto termination =
      OrEnd(Termination::Watch(job.term_grace / 2,
                               [&log] {
                                 log.Write(EventLevel::kWarning, log_events::kTermReceived,
                                           "SIGTERM, and no step has ended since: stops without a "
                                           "checkpoint");
                               }),
            log, ledger.get(), "init", kRankException);

  const DataSet data_set = OrEnd(LoadDataSet(job.data_dir), log, ledger.get(), "init", kRankData);
  const UniqueFd checkpoint_dir(
      ::open(flags.checkpoint_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!checkpoint_dir) {
    EndFailed(log, ledger.get(), "resume", kRankCheckpoint,
              FailErrno("open the checkpoint directory", flags.checkpoint_dir.native()).value());
  }
  const int64_t step =
      FindStep(checkpoint_dir.get(), job.checkpoint.every,
               environment->rank + 1 == environment->world_size, log, ledger.get());
  log.SetStep(step);
  const auto start_workers = [&](int64_t first_step) {
    return WorkerPool::Start(
        PoolOptions(job, environment->rank, first_step, data_set.samples, log));
  };
  auto workers = OrEnd(start_workers(step + 1), log, ledger.get(), "data", kRankData);
  RankContext context{*environment,
                      job,
                      flags.checkpoint_dir,
                      checkpoint_dir.get(),
                      log,
                      *ledger,
                      heartbeat,
                      *termination,
                      data_set,
                      step,
                      std::move(workers),
                      start_workers};
  End(ledger.get(), RunRank(context));
}

}  // namespace
}  // namespace shakedown

int main(int argc, char** argv) {
  if (shakedown::ServeForks()) shakedown::probe::Hello();
  // As Python does: Gloo writes to connections of peers that may be dead, and what it has to get is
  // EPIPE, which becomes peer.lost, not a signal that ends the process without a word.
  (void)std::signal(SIGPIPE, SIG_IGN);
  shakedown::Main(std::vector<std::string>(argv + 1, argv + argc));
}
