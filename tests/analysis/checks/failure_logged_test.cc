#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "failure_logged";

TEST(FailureLogged, SoundLogsOfEachFaultPass) {
  for (const RunDirBuilder& run :
       {RunDirBuilder::Control(), RunDirBuilder::RankKilled(), RunDirBuilder::CollectiveTimeout(),
        RunDirBuilder::HangWatchdog(), RunDirBuilder::DiskFull(), RunDirBuilder::SlowDataWorker(),
        RunDirBuilder::OutOfMemory()}) {
    const Finding finding = JudgeOne(run, kCheck);
    EXPECT_EQ(finding.status, CheckStatus::kPass) << run.plan.scenario.name << finding.reason;
  }
}

TEST(FailureLogged, AnErrorLineThatWasDeletedBeforeTheSealBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  EXPECT_EQ(run.RemoveLines(0, 2, "peer.lost"), 1U);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("rank 2 did not log peer.lost"));
}

TEST(FailureLogged, AnErrorLineThatWasDeletedAfterTheSealIsInconclusive) {
  const Finding finding =
      JudgeOneAfter(RunDirBuilder::RankKilled(), kCheck, [](const std::filesystem::path& root) {
        const std::filesystem::path log = root / "attempt-0/rank-2/log.jsonl";
        std::ifstream in(log);
        std::string kept;
        for (std::string line; std::getline(in, line);) {
          if (line.find("peer.lost") == std::string::npos) kept += line + "\n";
        }
        std::ofstream(log) << kept;
      });
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("is not what was sealed"));
}

TEST(FailureLogged, ALowerLevelBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(0, 0, "peer.lost"))["level"] = "WARNING";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("rank 0 did not log peer.lost at level ERROR"));
}

TEST(FailureLogged, AnotherStepBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(0, 0, "peer.lost"))["step"] = 12;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("step 39"));
}

TEST(FailureLogged, AnExitReportThatBlamesAPeerBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(0, std::nullopt, "attempt.failed"))["cause"][0]["rank"] = 0;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("rank 1 as the only cause"));
}

TEST(FailureLogged, AnExitReportWithAnotherLastStepBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(0, std::nullopt, "attempt.failed"))["last_step"] = 12;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("last step 12"));
}

TEST(FailureLogged, AFailedSaveWithoutItsErrnoBreaks) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  (*run.FindLine(0, 0, "checkpoint.failed"))["errno"] = 5;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("ENOSPC"));
}

TEST(FailureLogged, AWarningThatNamesAnotherWorkerBreaks) {
  RunDirBuilder run = RunDirBuilder::SlowDataWorker();
  (*run.FindLine(0, 0, "data.slow"))["worker"] = 3;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("data.slow"));
}

TEST(FailureLogged, OutOfMemoryWithoutSizesBreaks) {
  RunDirBuilder run = RunDirBuilder::OutOfMemory();
  run.FindLine(0, 0, "memory.exhausted")->erase("requested_bytes");
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("with sizes"));
}

TEST(FailureLogged, AWarningInAnUndisturbedRunBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  (*run.FindLine(0, 1, "training.finished"))["level"] = "WARNING";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("although nothing was injected"));
}

TEST(FailureLogged, AnErrorBeforeTheFaultBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  (*run.FindLine(0, 0, "checkpoint.saved"))["level"] = "ERROR";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("before anything was injected"));
}

TEST(FailureLogged, ALineThatNamesAnotherRankBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.attempts[0].ranks[2].log[0]["rank"] = 0;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("rank 2 logged"));
  EXPECT_THAT(finding.reason, HasSubstr("as rank 0"));
}

}  // namespace
}  // namespace shakedown::test_support
