#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "replicas_equal";

TEST(ReplicasEqual, EqualReplicasPass) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(ReplicasEqual, OneRankThatDriftsBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.attempts[1].ranks[2].Row(44).state.weights.digest.low ^= 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("different weights after step 44"));
}

TEST(ReplicasEqual, ALoadThatDiffersBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  std::get<LedgerStart>(run.attempts[1].ranks[2].ledger[0]).state.weights.digest.low ^= 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("at the start"));
}

TEST(ReplicasEqual, ADumpThatIsNotWhatTheLedgerSaysBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.attempts[1].ranks[1].weights_end[5] ^= 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("is not what its ledger says"));
}

TEST(ReplicasEqual, AMissingDumpBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.attempts[1].ranks[1].weights_end.clear();
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("left no weights-end.bin"));
}

TEST(ReplicasEqual, TwoRanksThatDrawTheSameNumbersBreak) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.attempts[1].ranks[2].Row(44).state.rng = run.attempts[1].ranks[0].Row(44).state.rng;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason,
              HasSubstr("rank 0 and rank 2 have the same generator state after step 44"));
}

TEST(ReplicasEqual, OptimizerStateThatDiffersBreaksAlthoughWeightsAreEqual) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  std::get<LedgerStart>(run.attempts[1].ranks[2].ledger[0]).state.optimizer.digest.low ^= 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("different optimizer state at the start"));
}

}  // namespace
}  // namespace shakedown::test_support
