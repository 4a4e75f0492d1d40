#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "restart_budget";

TEST(RestartBudget, OneRestartWithAFreshStorePasses) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(RestartBudget, AStoreThatIsUsedAgainBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(1, std::nullopt, "attempt.started"))["store"] = "store-0";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("store of an earlier attempt"));
}

TEST(RestartBudget, ACounterThatDoesNotCountBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(1, std::nullopt, "attempt.started"))["restarts_left"] = 3;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("restarts left"));
}

TEST(RestartBudget, MoreRestartsThanExpectedBreak) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.expect().restarts = 0;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("restarted 1 times, expected are 0"));
}

TEST(RestartBudget, FewerRestartsThanExpectedBreak) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.expect().outcome = Outcome::kRecovers;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("expected are 1"));
}

TEST(RestartBudget, AnAttemptThatNobodyLoggedBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  Event hello = run.FindObserved(events::kProcessHello);
  hello.fields["attempt"] = 1;
  run.observed.push_back(hello);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("2 attempts were seen"));
}

}  // namespace
}  // namespace shakedown::test_support
