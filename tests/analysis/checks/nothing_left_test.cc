#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "nothing_left";

TEST(NothingLeft, AnEmptyInspectionPasses) {
  const Finding finding = JudgeOne(RunDirBuilder::Control(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(NothingLeft, AProcessThatIsLeftBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.FindObserved(events::kLeftoversInspected).fields["processes"] =
      Json::array({{{"pid", 7}, {"command", "shakedown-data-worker"}}});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("shakedown-data-worker"));
}

TEST(NothingLeft, ATemporaryFileThatIsLeftBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.FindObserved(events::kLeftoversInspected).fields["temporary"] = {"store-x"};
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("store-x"));
}

TEST(NothingLeft, AnInspectionThatDidNotLookForProcessesIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.FindObserved(events::kLeftoversInspected).fields["inspected"] = {"temporary"};
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("not looked for"));
}

TEST(NothingLeft, AnInspectionBeforeTheEndIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.FindObserved(events::kLeftoversInspected).t.ns -= 1'000'000'000;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("before the job had ended"));
}

}  // namespace
}  // namespace shakedown::test_support
