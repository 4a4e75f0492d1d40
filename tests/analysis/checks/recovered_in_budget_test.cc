#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "recovered_in_budget";

TEST(RecoveredInBudget, ARecoveryWithinItsBudgetsPasses) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(RecoveredInBudget, ABudgetOf1MsBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.expect().recovery_budget = std::chrono::milliseconds(1);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("budget 1 ms"));
}

TEST(RecoveredInBudget, LostStepsBeyondTheBudgetBreak) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.resume_from = 20});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("lost 18 steps, budget 10"));
}

TEST(RecoveredInBudget, AJobThatIsSlowerAfterwardsBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (FakeRank& rank : run.attempts[1].ranks) {
    for (uint64_t step = 40; step <= 60; ++step) {
      rank.Row(step).t_ns += static_cast<int64_t>(step - 39) * 90'000'000;
    }
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("for a step"));
}

TEST(RecoveredInBudget, AJobThatNeverDoesANewStepBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.last_step = 38});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("never completed another"));
}

TEST(RecoveredInBudget, ALedgerThatDisagreesWithTheControllerIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (FakeRank& rank : run.attempts[1].ranks) rank.Row(39).t_ns += 5'000'000'000;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("ranks say"));
}

TEST(RecoveredInBudget, NothingInjectedIsNotApplicable) {
  RunDirBuilder run = RunDirBuilder::Control();
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kNotApplicable) << finding.reason;
}

}  // namespace
}  // namespace shakedown::test_support
