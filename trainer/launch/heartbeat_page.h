// The launcher's end of a rank's heartbeat (harness/wire/heartbeat.h).
#pragma once

#include <cstdint>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/wire/heartbeat.h"

namespace shakedown {

class HeartbeatPage {
 public:
  // A new memfd, all zero, sealed against shrinking: the rank cannot hand us SIGBUS.
  static Result<HeartbeatPage> Create();

  HeartbeatPage(HeartbeatPage&& other) noexcept;
  HeartbeatPage& operator=(HeartbeatPage&&) = delete;
  ~HeartbeatPage();

  int fd() const { return fd_.get(); }
  bool ready() const { return page_->ready.load(std::memory_order_relaxed) != 0; }
  int64_t step() const { return static_cast<int64_t>(page_->step.load(std::memory_order_relaxed)); }

 private:
  HeartbeatPage(UniqueFd fd, Heartbeat* page) : fd_(std::move(fd)), page_(page) {}
  UniqueFd fd_;
  Heartbeat* page_;
};

}  // namespace shakedown
