#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "detected";

TEST(Detected, ALostPeerThatIsLoggedWithinItsBudgetPasses) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(Detected, ABudgetThatIsTooSmallBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.expect().detected_within = std::chrono::microseconds(100);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("budget 0 ms"));
}

TEST(Detected, TheVictimsOwnDeathIsNoReaction) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (int r = 0; r < 3; ++r) {
    run.RemoveLines(0, r, "peer.lost");
    run.RemoveLines(0, r, "rank.failed");
  }
  run.RemoveLines(0, std::nullopt, "rank.exited");
  run.RemoveLines(0, std::nullopt, "attempt.failed");
  std::erase_if(run.observed, [](const Event& event) {
    return event.name == events::kProcessExited && event.fields["rank"] != 1;
  });
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("never noticed"));
}

TEST(Detected, NothingInjectedIsNotApplicable) {
  RunDirBuilder run = RunDirBuilder::Control();
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kNotApplicable) << finding.reason;
}

TEST(Detected, UnderOverloadALateNoticeIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.expect().detected_within = std::chrono::microseconds(100);
  run.FindObserved(events::kLoadSampled).fields["slip_ms"] = 400;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("overloaded"));
}

}  // namespace
}  // namespace shakedown::test_support
