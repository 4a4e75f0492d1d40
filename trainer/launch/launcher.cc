#include "trainer/launch/launcher.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "harness/base/file.h"
#include "harness/base/log.h"
#include "harness/wire/environment.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/log_events.h"
#include "harness/wire/run_dir.h"
#include "trainer/defects/defect.h"
#include "trainer/launch/attempt.h"

namespace shakedown {
namespace {

std::string RunIdOfJob() {
  const char* given = std::getenv(env::kRunId);
  if (given != nullptr && *given != '\0') return given;
  char text[32];
  std::snprintf(text, sizeof text, "job-%08x", std::random_device()());
  return text;
}

// For the person who started the job; the log has the same as fields.
void Say(const std::string& sentence) {
  (void)std::fprintf(stderr, "shakedown-launch: %s\n", sentence.c_str());
}

Json Numbers(int attempts, int exit_code) {
  return {{"attempts", attempts}, {"exit_code", exit_code}};
}

int Finish(LaunchLog& log, int attempts, int exit_code) {
  log.Write(EventLevel::kInfo, log_events::kJobFinished,
            "the job ended after " + std::to_string(attempts) + " attempts with exit status " +
                std::to_string(exit_code),
            Numbers(attempts, exit_code));
  return exit_code;
}

void ReportFailure(LaunchLog& log, int attempt, const AttemptFacts& facts) {
  ExitReport report = MakeExitReport(facts);
  if (Planted(Defect::kBlamesPeers)) std::swap(report.cause, report.consequences);
  const std::string message =
      "attempt " + std::to_string(attempt) + " failed; " + ToSentence(report);
  Json fields = {{"attempt", attempt}};
  fields.update(ToJson(report));
  log.Write(EventLevel::kError, log_events::kAttemptFailed, message, std::move(fields));
  Say(message);
}

// Whether there may be another attempt; says so either way.
bool MayRestart(LaunchLog& log, const JobConfig& job, int attempt) {
  if (job.restart_policy == RestartPolicy::kNone) {
    Say("not restarted: the job's restart policy is none");
    return false;
  }
  const int left = job.max_restarts - attempt;
  if (left <= 0 && !(attempt < job.max_restarts + 2 && Planted(Defect::kRestartsWithoutEnd))) {
    const std::string message =
        "the budget of " + std::to_string(job.max_restarts) + " restarts is used up";
    log.Write(EventLevel::kError, log_events::kRestartExhausted, message,
              {{"restarts", job.max_restarts}});
    Say(message);
    return false;
  }
  log.Write(EventLevel::kWarning, log_events::kRestartScheduled,
            "the group is started again from its newest checkpoint",
            {{"attempt", attempt + 1}, {"restarts_left", left - 1}});
  return true;
}

// What bugs do to the logs of an attempt that has failed.
void SpoilLogs(const LaunchOptions& options, int attempt) {
  const RunDir run(options.log_dir);
  std::error_code ignored;
  const int last = options.job.ranks - 1;
  if (Planted(Defect::kLosesRankLog))
    std::filesystem::remove(run.rank(attempt, last) / kRankLog, ignored);
  if (attempt == 0 && Planted(Defect::kOverwritesFirstLog)) {
    for (int r = 0; r <= last; ++r)
      std::filesystem::resize_file(run.rank(0, r) / kRankLog, 0, ignored);
  }
}

std::optional<ForkServer> StartForkServer(const LaunchOptions& options, const StopSignals& stop) {
  if (!options.fork_server) return std::nullopt;
  Result<ForkServer> server =
      ForkServer::Start(options.command, options.job.startup_timeout, stop.fd());
  if (server) return *std::move(server);
  // What is wrong with the command shows again, in the log of each rank.
  Say("ranks are started one by one: " + server.error().message);
  return std::nullopt;
}

// A rank that ran out of memory although it had split its micro-batch, or could not, needs smaller
// pieces from the start; as many as samples is the end of that.
int PartsAfter(const AttemptFacts& facts, int parts, const JobConfig& job) {
  const bool out_of_memory = std::any_of(
      facts.ends.begin(), facts.ends.end(),
      [](const RankEnd& end) { return !end.by_launcher && end.status.code() == kRankOutOfMemory; });
  return out_of_memory ? std::min(parts * 2, std::max(job.micro_batch, 1)) : parts;
}

}  // namespace

int RunJob(const LaunchOptions& options, StopSignals& stop) {
  std::optional<ForkServer> server = StartForkServer(options, stop);
  AttemptPlan plan;
  plan.run_id = RunIdOfJob();
  for (;; ++plan.number) {
    plan.restarts_left = options.job.max_restarts - plan.number;
    const RunDir run(options.log_dir);
    Status made = MakeDirectories(run.attempt(plan.number));
    Result<LaunchLog> log =
        made ? LaunchLog::Open(run.launcher_log(plan.number)) : tl::unexpected(made.error());
    if (!log) {
      Say(log.error().message);
      return kLaunchFailed;
    }
    const int attempts = plan.number + 1;
    const Result<AttemptResult> result = RunAttempt(options, plan, stop, *log, server);
    if (!result) {
      Say(result.error().message);
      return Finish(*log, attempts, kLaunchFailed);
    }
    switch (result->how) {
      case AttemptResult::How::kStopped:
        Say("stopped on request; all ranks have ended");
        return Finish(*log, attempts, kLaunchStopped);
      case AttemptResult::How::kSucceeded: {
        Json fields = {{"attempt", plan.number}};
        fields.update(Numbers(attempts, kLaunchOk));
        log->Write(EventLevel::kInfo, log_events::kAttemptFinished, "all ranks succeeded",
                   std::move(fields));
        return Finish(*log, attempts, kLaunchOk);
      }
      case AttemptResult::How::kFailed:
        ReportFailure(*log, plan.number, result->facts);
        SpoilLogs(options, plan.number);
        if (!MayRestart(*log, options.job, plan.number)) {
          return Finish(*log, attempts, kLaunchFailed);
        }
        plan.micro_batch_parts = PartsAfter(result->facts, plan.micro_batch_parts, options.job);
        break;
    }
  }
}

}  // namespace shakedown
