// Our own short-lived helpers, such as eu-stack: run to the end, output captured, always bounded.
// Jobs are not started here (spawn.h). child.cc is the only includer of Boost.Process.
#pragma once

#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/process/wait_status.h"

namespace shakedown {

struct HelperRequest {
  std::vector<std::string> argv;              // argv[0]: a path, or a name looked up in PATH
  std::vector<std::string> environment = {};  // NAME=value, added to ours
  Milliseconds deadline{5000};                // then SIGKILL, and an Error
  size_t output_limit_bytes = 4 << 20;        // of each stream; what comes after is dropped
};

struct HelperResult {
  WaitStatus status = WaitStatus::Exited(0);
  std::string out;
  std::string err;
};

// Blocks until it has ended and closed its output. Callable from any thread; threads do not disturb
// one another. Signals are unblocked and at their defaults in the helper. A program that is not
// there is an Error that names it.
Result<HelperResult> RunHelper(const HelperRequest& request);

}  // namespace shakedown
