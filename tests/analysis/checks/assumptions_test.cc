#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "assumptions";

TEST(Assumptions, ASoundRunIsSteady) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(Assumptions, WeightsThatDoNotChangeMakeTheRunInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (FakeRank& rank : run.attempts[0].ranks) {
    rank.Row(8).state.weights = rank.Row(7).state.weights;
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("did not change"));
}

TEST(Assumptions, ALossThatIsNotFiniteBeforeTheFaultMakesTheRunInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.attempts[0].ranks[2].Row(9).loss_bits = std::bit_cast<uint64_t>(std::nan(""));
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("not finite"));
}

TEST(Assumptions, AClockThatGoesBackMakesTheRunInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.attempts[0].ranks[0].Row(9).t_ns = run.attempts[0].ranks[0].Row(8).t_ns;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("clock"));
}

TEST(Assumptions, ALongPauseBeforeTheFaultMakesTheRunInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (uint64_t step = 1; step <= 20; ++step) {
    run.attempts[0].ranks[0].Row(step).t_ns -= 900'000'000;
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("not steady"));
}

TEST(Assumptions, TooFewStepsBeforeTheFaultMakeTheRunInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (Event& event : run.injected) {
    if (event.name == secret_events::kFaultInjected)
      event.fields["t0_ns"] = run.attempts[0].ranks[0].Row(3).t_ns;
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("steps before the first fault"));
}

TEST(Assumptions, AWorkerThatReadsAheadOfItsRankNeedsFewerSteps) {
  RunDirBuilder run = RunDirBuilder::SlowDataWorker();
  Event& injected = run.FindInjected(secret_events::kFaultInjected);
  injected.fields["t0_ns"] = run.attempts[0].ranks[0].Row(4).t_ns;
  const Finding enough = JudgeOne(run, kCheck);
  EXPECT_EQ(enough.status, CheckStatus::kPass) << enough.reason;

  injected.fields["t0_ns"] = run.attempts[0].ranks[0].Row(2).t_ns;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
}

TEST(Assumptions, ARankThatNoPageShowsMakesTheRunInvalid) {
  RunDirBuilder run = RunDirBuilder::Control();
  std::erase_if(run.observed, [](const Event& event) {
    return event.name == events::kPageSampled && event.fields["rank"] == 2;
  });
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("never seen by its page"));
}

TEST(Assumptions, OverloadIsMeasuredAndDoesNotMakeTheRunInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.FindObserved(events::kLoadSampled).fields["slip_ms"] = 400;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("overloaded"));
}

}  // namespace
}  // namespace shakedown::test_support
