#include "trainer/data/sampler.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/wire/schedule.h"

namespace shakedown {
namespace {

JobConfig Job() {
  JobConfig job;
  job.ranks = 3;
  job.micro_batch = 4;
  job.accumulation = 2;
  job.seed = 7;
  return job;
}
constexpr uint32_t kSamples = 100;  // 4 steps of 24 an epoch, 4 samples left over

TEST(Sampler, BatchesAreNumberedThroughStepsAndMicroBatches) {
  const JobConfig job = Job();
  EXPECT_EQ(BatchNumber(job, 1, 0), 1);
  EXPECT_EQ(BatchNumber(job, 1, 1), 2);
  EXPECT_EQ(BatchNumber(job, 2, 0), 3);
}

TEST(Sampler, FollowsTheScheduleOverTwoEpochs) {
  const JobConfig job = Job();
  for (int rank = 0; rank < job.ranks; ++rank) {
    Sampler sampler(job, kSamples, rank);
    for (int64_t step = 1; step <= 8; ++step) {
      const int64_t epoch = (step - 1) / 4;
      const std::vector<uint32_t> order = EpochOrder(job.seed, epoch, kSamples);
      for (int m = 0; m < job.accumulation; ++m) {
        const int64_t begin = (step - 1) % 4 * 24 + rank * 8 + m * 4;
        const std::vector<uint32_t> expected(order.begin() + begin, order.begin() + begin + 4);
        EXPECT_EQ(sampler.Ids(BatchNumber(job, step, m)), expected);
      }
    }
  }
}

TEST(Sampler, AnEpochUsesEachSampleAtMostOnceAndDropsTheRemainder) {
  const JobConfig job = Job();
  std::multiset<uint32_t> used;
  for (int rank = 0; rank < job.ranks; ++rank) {
    Sampler sampler(job, kSamples, rank);
    for (int64_t batch = 1; batch <= 8; ++batch) {
      for (const uint32_t id : sampler.Ids(batch)) used.insert(id);
    }
  }
  EXPECT_EQ(used.size(), 96u);
  EXPECT_EQ(std::set<uint32_t>(used.begin(), used.end()).size(), 96u);
}

TEST(Sampler, GoesBackToAnEarlierBatch) {
  Sampler sampler(Job(), kSamples, 1);
  const std::vector<uint32_t> first = sampler.Ids(1);
  EXPECT_NE(sampler.Ids(9), first);  // the next epoch
  EXPECT_EQ(sampler.Ids(1), first);
}

TEST(SamplerDeathTest, AsksForAtLeastOneGlobalBatch) {
  EXPECT_DEATH(Sampler(Job(), 23, 0), "global_batch");
}

}  // namespace
}  // namespace shakedown
