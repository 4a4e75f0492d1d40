// shakedown-launch: starts the ranks of a job, watches them and restarts them by the job's policy.
//   shakedown-launch --config RUN/job.json --log-dir RUN --checkpoint-dir DIR [--trainer PATH]
//   shakedown-launch --config RUN/job.json --log-dir RUN -- COMMAND...
#include <cstdio>

#include "harness/base/log.h"
#include "harness/wire/exit_code.h"
#include "trainer/launch/launcher.h"
#include "trainer/launch/options.h"
#include "trainer/launch/stop_signals.h"

int main(int argc, char** argv) {
  using namespace shakedown;
  InitLog("shakedown-launch");
  // First of all: a stop that comes while the options are read must not be lost.
  Result<StopSignals> stop = StopSignals::Open();
  const Result<LaunchOptions> options = ParseLaunchOptions(argc, argv);
  if (!options || !stop) {
    const Error& error = options ? stop.error() : options.error();
    (void)std::fprintf(stderr, "shakedown-launch: %s\n", error.message.c_str());
    return options ? kLaunchFailed : kLaunchUsage;
  }
  if (options->command.empty()) return kLaunchOk;  // --help
  return RunJob(*options, *stop);
}
