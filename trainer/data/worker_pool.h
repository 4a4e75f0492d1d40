// The data workers of one rank: processes that read micro-batches ahead of the training loop.
//
// Workers are exec'ed, never forked after torch: they share nothing with the rank but a ring in
// unnamed shared memory (ring.h) and a socket. Batch n comes from worker (n - 1) % workers, so the
// order does not depend on which worker is faster. A worker that dies, misses its deadline or
// delivers damaged bytes is replaced by one that begins at the first batch not yet handed out:
// exact replay, order unchanged. A worker ends by itself when its rank does, however the rank ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/process/identity.h"
#include "harness/process/wait_status.h"
#include "harness/wire/job.h"

namespace shakedown {

// A micro-batch: ids.size() samples of `features` bytes each. Numbers as in sampler.h.
struct Batch {
  int64_t number = 0;
  std::vector<uint32_t> ids;    // sample ids, in the order of pixels and labels
  std::vector<uint8_t> pixels;  // ids.size() * features
  std::vector<uint8_t> labels;  // ids.size()
};

struct WorkerPoolOptions {
  std::string worker_binary;  // path of shakedown-data-worker
  JobConfig job;              // data_dir, workers, prefetch, deadlines and what decides the order
  int rank = 0;
  int64_t first_batch = 1;
  // From exec until a worker has loaded its data. This time counts neither as slow nor against
  // worker_deadline.
  Nanoseconds start_allowance{std::chrono::seconds(20)};

  // Called on the thread that calls Next(), before the worker is replaced. Any may be empty.
  // Once per batch: the rank has waited job.slow_data_warning for it.
  std::function<void(int worker, int64_t batch, Nanoseconds waited)> on_slow;
  // The worker was ended and makes way for the one with this incarnation. `reason` is "deadline",
  // "start" (start_allowance was over) or "checksum".
  std::function<void(int worker, int64_t batch, Nanoseconds waited, int incarnation,
                     std::string_view reason)>
      on_replaced;
  // The worker ended by itself, before it had delivered `batch`; it is started anew.
  std::function<void(int worker, int64_t batch, const WaitStatus& status)> on_died;
};

// Not thread-safe.
class WorkerPool {
 public:
  // Starts all workers and returns without waiting for them. An Error when the data set cannot be
  // read, is smaller than a global batch, or a worker cannot be started; nothing is left then.
  // REQUIRES: job.workers >= 1, job.prefetch >= 1, first_batch >= 1.
  static Result<std::unique_ptr<WorkerPool>> Start(WorkerPoolOptions options);

  // Tells the workers to stop, waits a moment, ends those that did not and reaps them all. Takes
  // 250 ms at most.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // The next batch in order; waits for it. An Error when its worker had to be replaced more than
  // three times for this batch (more than once when its bytes were damaged), with the last reason.
  // After an Error the pool can only be destroyed.
  Result<Batch> Next();

  int64_t samples() const;   // of the data set
  int64_t features() const;  // bytes per sample

  // The process that is now worker `worker`.
  const ProcessIdentity& process(int worker) const;

 private:
  class Impl;
  explicit WorkerPool(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace shakedown
