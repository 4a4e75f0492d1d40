#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "timeout_effective";

TEST(TimeoutEffective, EachOfTheThreeLimitsPassesWhenItFires) {
  for (const RunDirBuilder& run :
       {RunDirBuilder::CollectiveTimeout(), RunDirBuilder::HangWatchdog(),
        RunDirBuilder::SlowDataWorker()}) {
    const Finding finding = JudgeOne(run, kCheck);
    EXPECT_EQ(finding.status, CheckStatus::kPass) << run.plan.scenario.name << finding.reason;
  }
}

TEST(TimeoutEffective, AnotherLimitThanTheStatedOneBreaks) {
  RunDirBuilder run = RunDirBuilder::HangWatchdog();
  run.expect().timeout_fires = "collective";
  run.job().collective_timeout = std::chrono::minutes(10);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("watchdog fired"));
}

TEST(TimeoutEffective, ALimitThatNeverFiredBreaks) {
  RunDirBuilder run = RunDirBuilder::CollectiveTimeout();
  for (int r = 0; r < 3; ++r) run.RemoveLines(0, r, "collective.timeout");
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("no log says collective.timeout"));
}

TEST(TimeoutEffective, ALimitThatStatesAnotherValueBreaks) {
  RunDirBuilder run = RunDirBuilder::CollectiveTimeout();
  for (const int r : {0, 2}) (*run.FindLine(0, r, "collective.timeout"))["timeout_ms"] = 10000;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("states a limit of 10000 ms"));
}

TEST(TimeoutEffective, ALimitThatFiredTooEarlyBreaks) {
  RunDirBuilder run = RunDirBuilder::CollectiveTimeout();
  run.job().collective_timeout = std::chrono::seconds(9);
  run.FindObserved(events::kRunStarted).fields["job"] = ToJson(run.job());
  for (const int r : {0, 2}) (*run.FindLine(0, r, "collective.timeout"))["timeout_ms"] = 9000;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("fired after"));
}

TEST(TimeoutEffective, LimitsThatAreTooNearAreInconclusive) {
  RunDirBuilder run = RunDirBuilder::CollectiveTimeout();
  run.job().watchdog = std::chrono::milliseconds(5500);
  run.FindObserved(events::kRunStarted).fields["job"] = ToJson(run.job());
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("too near"));
}

TEST(TimeoutEffective, AnErrorBeforeTheLimitBreaks) {
  RunDirBuilder run = RunDirBuilder::CollectiveTimeout();
  Json line = *run.FindLine(0, 0, "collective.timeout");
  line["event"] = "peer.lost";
  line["t_ns"] = line["t_ns"].get<int64_t>() - 900'000'000;
  run.attempts[0].ranks[2].log.push_back(line);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("before the limit fired"));
}

TEST(TimeoutEffective, AScenarioThatNamesNoLimitIsNotApplicable) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kNotApplicable) << finding.reason;
}

}  // namespace
}  // namespace shakedown::test_support
