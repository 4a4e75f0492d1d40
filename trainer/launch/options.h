// What shakedown-launch was asked to do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/wire/job.h"

namespace shakedown {

struct LaunchOptions {
  JobConfig job;                     // ranks, timeouts, watchdog, restart policy and budget
  std::filesystem::path log_dir;     // gets attempt-K/ (harness/wire/run_dir.h)
  std::vector<std::string> command;  // of every rank; command[0] is an executable file
  bool fork_server = false;          // start method forkserver (trainer/fork_server)
};

// Parses the command line. A value: go on. An Error: a sentence for people; nothing was made or
// started. --help prints the usage and gives a LaunchOptions without a command.
Result<LaunchOptions> ParseLaunchOptions(int argc, char** argv);

}  // namespace shakedown
