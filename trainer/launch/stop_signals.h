// SIGTERM, SIGINT and SIGHUP as something that can be waited for.
#pragma once

#include <optional>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"

namespace shakedown {

class StopSignals {
 public:
  // Blocks the three signals in the calling thread. Call before any thread or process is started;
  // Spawn unblocks them in the child.
  static Result<StopSignals> Open();

  int fd() const { return fd_.get(); }  // readable when one has come
  // The next one that has come; never blocks.
  std::optional<int> Take();

 private:
  explicit StopSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace shakedown
