#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "exit_truthful";

TEST(ExitTruthful, LauncherAndKernelThatAgreePass) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(ExitTruthful, ALauncherThatHidesASignalBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  Json& line = *run.FindLine(0, std::nullopt, "rank.exited");
  line.erase("signal");
  line["code"] = 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("the kernel says SIGKILL"));
}

TEST(ExitTruthful, ALauncherThatClaimsAKillOfSomebodyElseBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(0, std::nullopt, "rank.exited"))["by"] = "launcher";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("killed by somebody else"));
}

TEST(ExitTruthful, AKillByTheLauncherThatItDoesNotOwnUpToBreaks) {
  RunDirBuilder run = RunDirBuilder::HangWatchdog();
  for (Json& line : run.attempts[0].launcher) {
    if (line["event"] == "rank.exited") line["by"] = "itself";
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("does not say so"));
}

TEST(ExitTruthful, ARankThatLostAPeerAndLeftWithSuccessBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (Event& event : run.observed) {
    if (event.name == events::kProcessExited && event.fields["rank"] == 0) event.fields["code"] = 0;
  }
  for (Json& line : run.attempts[0].launcher) {
    if (line["event"] == "rank.exited" && line["rank"] == 0) line["code"] = 0;
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("rank 0 logged"));
}

TEST(ExitTruthful, AnUnreportedExitBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.RemoveLines(0, std::nullopt, "rank.exited");
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("never said how"));
}

TEST(ExitTruthful, AJobThatLeavesWithSuccessAfterAFailedRankBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.attempts[0].ranks[2].ledger.pop_back();
  for (Event& event : run.observed) {
    if (event.name == events::kProcessExited && event.fields["rank"] == 2)
      event.fields["code"] = 73;
  }
  for (Json& line : run.attempts[0].launcher) {
    if (line["event"] == "rank.exited" && line["rank"] == 2) line["code"] = 73;
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("status 0 although rank 2"));
}

TEST(ExitTruthful, WithoutTheKernelsWordItIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (Event& event : run.observed) {
    if (event.name == events::kProcessExited) event.fields["source"] = "launcher";
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("the kernel's word is missing"));
}

TEST(ExitTruthful, WithoutTheKernelsWordItIsNotApplicableWhereTheScenarioSaysSo) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.expect().exit_witness_optional = true;
  for (Event& event : run.observed) {
    if (event.name == events::kProcessExited) event.fields["source"] = "launcher";
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kNotApplicable) << finding.reason;
}

}  // namespace
}  // namespace shakedown::test_support
