#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "fault_proven";

TEST(FaultProven, AFaultWithItsWitnessesIsProven) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(FaultProven, AStallAndADiskFaultAreProven) {
  for (const RunDirBuilder& run :
       {RunDirBuilder::CollectiveTimeout(), RunDirBuilder::DiskFull(),
        RunDirBuilder::SlowDataWorker(), RunDirBuilder::OutOfMemory(), RunDirBuilder::Control()}) {
    const Finding finding = JudgeOne(run, kCheck);
    EXPECT_EQ(finding.status, CheckStatus::kPass) << run.plan.scenario.name << finding.reason;
  }
}

TEST(FaultProven, AStepBeyondTheEndIsInvalid) {
  RunDirBuilder run = RunDirBuilder::Control();
  Injection kill;
  kill.id = 1;
  kill.fault = "rank.kill";
  kill.step = 75;
  run.plan.injections.push_back(kill);
  Event missed;
  missed.name = secret_events::kFaultMissed;
  missed.fields = {{"injection", 1}, {"reason", "its point was never reached: step 75"}};
  run.injected.push_back(missed);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("never reached"));
}

TEST(FaultProven, ASwallowedSignalIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  Event& effect = run.FindInjected(secret_events::kWitnessed, 0);
  effect.fields["holds"] = false;
  effect.fields["held"] = 0;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("effect does not hold"));
}

TEST(FaultProven, AnEffectThatHeldOnlyAtTimesIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.FindInjected(secret_events::kWitnessed, 0).fields["held"] = 2;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("2 of 3 samples"));
}

TEST(FaultProven, AFaultThatWasInjectedTwiceIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.injected.push_back(run.FindInjected(secret_events::kFaultInjected));
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("2 times"));
}

TEST(FaultProven, AFaultOnAnotherRankIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.FindInjected(secret_events::kFaultInjected).fields["rank"] = 2;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("instead of rank 1"));
}

TEST(FaultProven, AFaultThatStandsInNoPlanIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  Event other = run.FindInjected(secret_events::kFaultInjected);
  other.fields["injection"] = 7;
  run.injected.push_back(other);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("stands in no plan"));
}

TEST(FaultProven, AHoldBeyondItsLimitIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.FindInjected(secret_events::kHoldReleased).fields["hold_ms"] = 101.0;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("limit 100 ms"));
}

TEST(FaultProven, AVictimThatDiedBeforeItWasKilledIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.FindObserved(events::kProcessExited).t.ns -= 50'000'000;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("had ended"));
}

TEST(FaultProven, AVictimThatEndedByItselfIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  Json& fields = run.FindObserved(events::kProcessExited).fields;
  fields.erase("signal");
  fields["code"] = 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("not by SIGKILL"));
}

TEST(FaultProven, AVictimWhosePageStandsElsewhereIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (Event& event : run.observed) {
    if (event.name == events::kPageSampled && event.fields["rank"] == 1 &&
        event.fields.contains("final")) {
      event.fields["lanes"]["main"]["step"] = 38;
      break;
    }
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("does not stand at"));
}

TEST(FaultProven, AFaultThatWasNotUndoneIsInvalid) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  run.FindInjected(secret_events::kFaultUndone).fields["ok"] = false;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("not undone"));
}

TEST(FaultProven, AMissingBystanderWitnessIsInvalid) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  std::erase_if(run.injected, [](const Event& event) {
    return event.name == secret_events::kWitnessed && event.fields["kind"] == "bystander";
  });
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInvalid) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("bystander was not witnessed"));
}

}  // namespace
}  // namespace shakedown::test_support
