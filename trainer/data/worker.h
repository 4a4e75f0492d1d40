// One data worker, from its first instruction to its last.
#pragma once

#include <cstdint>

#include "harness/wire/job.h"

namespace shakedown {

struct WorkerOptions {
  JobConfig job;
  int rank = 0;
  int worker = 0;
  int64_t first_batch = 1;
};

// Makes batches into the ring at kWorkerRingFd until the rank at kWorkerSocketFd says stop. Returns
// the exit status: kRankOk, or kRankData after a sentence on stderr. When the rank is gone it does
// not return: the process exits with kRankPeerLost.
int RunWorker(const WorkerOptions& options);

}  // namespace shakedown
