#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "outcome_reached";

TEST(OutcomeReached, AllPlannedStepsOnAllRanksPass) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(OutcomeReached, AnUndisturbedRunPasses) {
  const Finding finding = JudgeOne(RunDirBuilder::Control(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(OutcomeReached, AJobThatEndsAtStep59Breaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.last_step = 59});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("after step 59 of 60"));
}

TEST(OutcomeReached, AJobThatNeverRestartedBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.expect().outcome = Outcome::kRecovers;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("never restarted"));
}

TEST(OutcomeReached, AJobThatRestartedAlthoughItShouldNotBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.expect().outcome = Outcome::kUnaffected;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("restarted 1 times"));
}

TEST(OutcomeReached, AFailureStatusBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.FindObserved(events::kJobExited).fields["code"] = 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("exit status 1"));
}

TEST(OutcomeReached, AJobThatHadToBeEndedBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  std::erase_if(run.observed, [](const Event& e) { return e.name == events::kJobExited; });
  run.FindObserved(events::kRunEnded).fields = {{"how", "timed_out"}, {"reason", "limit 30 s"}};
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("did not end by itself"));
}

TEST(OutcomeReached, AFinalCheckpointOfAnotherStepBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.checkpoints.back()["checkpoints"].erase(2);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("final checkpoint is of step 50"));
}

TEST(OutcomeReached, ALedgerThatSaysMoreThanThePageBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (Event& event : run.observed) {
    if (event.name == events::kPageSampled && event.fields["rank"] == 1 &&
        event.fields["last_step"].get<int>() > 40) {
      event.fields["last_step"] = 40;
    }
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("last seen at step 40"));
}

TEST(OutcomeReached, AJobThatIsToStopMustNotEndWithSuccess) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.expect().outcome = Outcome::kStopsCleanly;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("status 0"));
}

TEST(OutcomeReached, WeightsThatNeverChangedBreak) {
  RunDirBuilder run = RunDirBuilder::Control();
  auto& ledger = run.attempts[0].ranks[1].ledger;
  run.attempts[0].ranks[1].Row(60).state.weights = std::get<LedgerStart>(ledger[0]).state.weights;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("nothing was learned"));
}

}  // namespace
}  // namespace shakedown::test_support
