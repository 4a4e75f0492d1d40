#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "checkpoint_safe";

TEST(CheckpointSafe, ASoundRunPasses) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(CheckpointSafe, AnUndisturbedRunPasses) {
  const Finding finding = JudgeOne(RunDirBuilder::Control(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(CheckpointSafe, ASilentStartFromStep0Breaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.resume_from = 0});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason,
              HasSubstr("silently started from step 0 although checkpoint 30 was complete"));
}

TEST(CheckpointSafe, AMomentWithoutACompleteCheckpointBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (Json& checkpoint : run.checkpoints[4]["checkpoints"]) checkpoint["verified"] = false;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("no complete checkpoint existed"));
}

TEST(CheckpointSafe, ATornCheckpointThatWasChosenBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  for (Json& record : run.checkpoints) {
    if (record["reason"] != "attempt_start" || record["attempt"] != 1) continue;
    record["checkpoints"].back()["verified"] = false;
    record["checkpoints"].back()["why"] = "shorter than its manifest says";
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("which was not complete"));
}

TEST(CheckpointSafe, OtherBytesThanTheCheckpointsBreak) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  std::get<LedgerStart>(run.attempts[1].ranks[1].ledger[0]).file_digest.low ^= 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("read other bytes"));
}

TEST(CheckpointSafe, ContentOfAnotherStepBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (Json& record : run.checkpoints) {
    for (Json& c : record["checkpoints"]) {
      if (c["step"] == 20)
        c["weights"] = ToHex(run.attempts[0].ranks[0].Row(19).state.weights.digest);
    }
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("does not hold the weights"));
}

TEST(CheckpointSafe, AGeneratorOfAnotherRankBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (Json& record : run.checkpoints) {
    for (Json& c : record["checkpoints"]) std::swap(c["rng"][0], c["rng"][1]);
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("generator's state"));
}

TEST(CheckpointSafe, AClaimThatNobodySawBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (LedgerRecord& record : run.attempts[0].ranks[0].ledger) {
    if (auto* saved = std::get_if<LedgerCheckpoint>(&record)) saved->file_digest.low ^= 1;
  }
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("never seen complete"));
}

TEST(CheckpointSafe, AJobThatNeverSavesBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  for (Json& record : run.checkpoints) record["checkpoints"] = Json::array();
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("no complete checkpoint was ever seen"));
}

TEST(CheckpointSafe, OneThatWasPublishedTornBreaksAlthoughAnOlderOneIsComplete) {
  RunDirBuilder run = RunDirBuilder::Control();
  Json& newest = run.checkpoints[4]["checkpoints"].back();
  newest["verified"] = false;
  newest["why"] = "shorter than its manifest says";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("was published, but is not complete: shorter"));
}

TEST(CheckpointSafe, OneThatIsNotPublishedYetMayBeIncomplete) {
  RunDirBuilder run = RunDirBuilder::Control();
  Json torn = run.checkpoints[4]["checkpoints"].back();
  torn["step"] = 60;
  torn["published"] = false;
  torn["verified"] = false;
  run.checkpoints[4]["checkpoints"].push_back(torn);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

}  // namespace
}  // namespace shakedown::test_support
