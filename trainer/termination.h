// SIGTERM: asks the training loop to stop at a step's end, and sees to it that the rank does not
// hang when the loop is stuck.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/base/unique_fd.h"

namespace shakedown {

// SIGTERM is taken by a thread of its own, so that it works whatever the training thread waits for.
class Termination {
 public:
  // Blocks SIGTERM in the calling thread and all that it starts from then on. When the training
  // thread has not called Acting() within `patience` of the signal, `overdue` runs on the watching
  // thread and the process then ends by SIGTERM, as if nobody had caught it: without a checkpoint
  // nothing better can be said of it.
  // REQUIRES: no other threads yet.
  static Result<std::unique_ptr<Termination>> Watch(Nanoseconds patience,
                                                    std::function<void()> overdue);
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // SIGTERM has come. Any thread.
  bool requested() const { return requested_.load(std::memory_order_acquire); }
  // The rank is about to stop by itself.
  void Acting();

 private:
  Termination(Nanoseconds patience, std::function<void()> overdue, UniqueFd signals, UniqueFd stop);
  void Run();

  const Nanoseconds patience_;
  const std::function<void()> overdue_;
  const UniqueFd signals_;  // signalfd
  const UniqueFd stop_;     // eventfd, written by the destructor
  std::atomic<bool> requested_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool acting_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace shakedown
