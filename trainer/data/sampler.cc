#include "trainer/data/sampler.h"

#include "harness/base/status.h"
#include "harness/wire/schedule.h"

namespace shakedown {

Sampler::Sampler(const JobConfig& job, uint32_t samples, int rank)
    : job_(job), samples_(samples), rank_(rank) {
  SHAKEDOWN_ASSERT(samples >= job.global_batch() && rank >= 0 && rank < job.ranks);
}

std::vector<uint32_t> Sampler::Ids(int64_t batch) {
  SHAKEDOWN_ASSERT(batch >= 1);
  const int64_t step = (batch - 1) / job_.accumulation;  // from 0
  const int64_t micro_batch = (batch - 1) % job_.accumulation;
  const int64_t epoch = step / StepsPerEpoch(job_, samples_);
  const int64_t step_of_epoch = step % StepsPerEpoch(job_, samples_);
  if (epoch != epoch_) {
    order_ = EpochOrder(job_.seed, epoch, samples_);
    epoch_ = epoch;
  }
  const int64_t rank_run = job_.global_batch() / job_.ranks;
  const int64_t begin =
      step_of_epoch * job_.global_batch() + rank_ * rank_run + micro_batch * job_.micro_batch;
  return {order_.begin() + begin, order_.begin() + begin + job_.micro_batch};
}

}  // namespace shakedown
