// What a rank and its data worker say to each other.
//
// A worker is started as
//   shakedown-data-worker --job JSON --rank R --worker W --first-batch N
// and makes the batches N, N + workers, N + 2 * workers, ... into a ring of `prefetch` slots. Over
// a SOCK_SEQPACKET socket it says that it is ready, then one packet per batch; each packet from the
// rank (of any content) says that one slot more is free. When the rank shuts its side for writing,
// the worker stops; when the rank's end is closed, the rank is gone and the worker exits wherever
// it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/wire/job.h"

namespace shakedown {

// Descriptors in the worker.
inline constexpr int kWorkerSocketFd = 3;
inline constexpr int kWorkerRingFd = 4;

// Batch number in the packet that says "ready: my data is loaded".
inline constexpr int64_t kWorkerReady = 0;

// Worker to rank. `batch` stands in the ring now.
struct WorkerPacket {
  int64_t batch;
};

// A batch in a slot: ids (uint32_t each), labels, pixels.
inline size_t PayloadBytes(const JobConfig& job, int64_t features) {
  return static_cast<size_t>(job.micro_batch) *
         (sizeof(uint32_t) + 1 + static_cast<size_t>(features));
}

}  // namespace shakedown
