#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "save_errors_surface";

TEST(SaveErrorsSurface, AReportedFailurePasses) {
  const Finding finding = JudgeOne(RunDirBuilder::DiskFull(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(SaveErrorsSurface, AFailureThatNobodyReportsBreaks) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  run.RemoveLines(0, 0, "checkpoint.failed");
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("neither saved nor reported"));
}

TEST(SaveErrorsSurface, AFailureThatIsLoggedAsASuccessBreaks) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  Json line = *run.FindLine(0, 0, "checkpoint.failed");
  line["event"] = "checkpoint.saved";
  line["level"] = "INFO";
  run.attempts[0].ranks[0].log.push_back(line);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("logged checkpoint 20 as saved"));
}

TEST(SaveErrorsSurface, AReportAfterTheNextSaveBreaks) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  Json& line = *run.FindLine(0, 0, "checkpoint.failed");
  line["t_ns"] = line["t_ns"].get<int64_t>() + 800'000'000;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("only after"));
}

TEST(SaveErrorsSurface, AnotherErrnoBreaks) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  (*run.FindLine(0, 0, "checkpoint.failed"))["errno"] = 5;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("with errno 28"));
}

TEST(SaveErrorsSurface, ASaveThatWasSilentlyLeftOutBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (Json& record : run.checkpoints) {
    Json kept = Json::array();
    for (const Json& c : record["checkpoints"]) {
      if (c["step"] != 40) kept.push_back(c);
    }
    record["checkpoints"] = kept;
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("checkpoint 40 was due"));
}

TEST(SaveErrorsSurface, ARunWithoutAFailedSaveIsNotApplicable) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kNotApplicable) << finding.reason;
}

}  // namespace
}  // namespace shakedown::test_support
