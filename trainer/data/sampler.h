// Which samples a rank's micro-batch holds: the order of harness/wire/schedule.h, by number.
//
// Micro-batches of a rank are numbered from 1 through the whole training: micro-batch m (from 0) of
// step s (from 1) is (s - 1) * accumulation + m + 1. So a number says everything, and a batch that
// was lost can be made again.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/wire/job.h"

namespace shakedown {

inline int64_t BatchNumber(const JobConfig& job, int64_t step, int micro_batch) {
  return (step - 1) * job.accumulation + micro_batch + 1;
}

// Not thread-safe: remembers the order of the epoch last asked for.
class Sampler {
 public:
  // REQUIRES: samples >= job.global_batch(), 0 <= rank < job.ranks.
  Sampler(const JobConfig& job, uint32_t samples, int rank);

  // job.micro_batch sample ids. REQUIRES: batch >= 1.
  std::vector<uint32_t> Ids(int64_t batch);

 private:
  const JobConfig job_;
  const uint32_t samples_;
  const int rank_;
  int64_t epoch_ = -1;
  std::vector<uint32_t> order_;
};

}  // namespace shakedown
