// One attempt: all ranks started once, watched until all of them have ended.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "trainer/fork_server/client.h"
#include "trainer/launch/exit_report.h"
#include "trainer/launch/launch_log.h"
#include "trainer/launch/options.h"
#include "trainer/launch/stop_signals.h"

namespace shakedown {

struct AttemptPlan {
  int number = 0;  // from 0
  int restarts_left = 0;
  int micro_batch_parts = 1;
  std::string run_id;
};

struct AttemptResult {
  // All ranks exited 0; failed (see facts); or the launcher was told to stop.
  enum class How { kSucceeded, kFailed, kStopped };
  How how = How::kSucceeded;
  AttemptFacts facts;
};

// Runs one attempt into log_dir/attempt-K and returns when every rank has ended and is reaped. An
// Error: a rank could not be started, or one does not end on SIGKILL; those that could be ended
// are. `server`: starts the ranks when there is one; empty afterwards when it failed.
Result<AttemptResult> RunAttempt(const LaunchOptions& options, const AttemptPlan& plan,
                                 StopSignals& stop, LaunchLog& log,
                                 std::optional<ForkServer>& server);

}  // namespace shakedown
