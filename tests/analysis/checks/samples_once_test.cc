#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

// Makes the digests of a row those of its samples again.
void Seal(LedgerStep& row) {
  std::string bytes(reinterpret_cast<const char*>(row.ids.data()), row.ids.size() * 4);
  row.ids_digest = Xxh3Of(bytes);
  row.ids_sum = 0;
  for (size_t at = 0; at < bytes.size(); at += 4) {
    row.ids_sum += Xxh3Of64(std::string_view(bytes).substr(at, 4));
  }
}

constexpr char kCheck[] = "samples_once";

TEST(SamplesOnce, EverySampleOncePasses) {
  const Finding finding = JudgeOne(RunDirBuilder::RankKilled(), kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(SamplesOnce, ASampleThatIsUsedTwiceBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  LedgerStep& row = run.attempts[1].ranks[0].Row(35);
  row.ids[0] = run.attempts[0].ranks[0].Row(12).ids[0];
  Seal(row);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("was used twice in epoch 0"));
}

TEST(SamplesOnce, StepsThatAreDoneAgainDoNotCountTwice) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.resume_from = 10});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(SamplesOnce, ASampleThatDoesNotExistBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.attempts[0].ranks[0].Row(5).ids[3] = 5000;
  Seal(run.attempts[0].ranks[0].Row(5));
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("does not exist"));
}

TEST(SamplesOnce, AnotherOrderBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  std::swap(run.attempts[0].ranks[0].Row(5).ids[3], run.attempts[0].ranks[0].Row(5).ids[4]);
  Seal(run.attempts[0].ranks[0].Row(5));
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("not those of the declared order"));
}

TEST(SamplesOnce, ADigestThatIsNotOfTheSamplesBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.attempts[0].ranks[0].Row(5).ids_sum += 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("digests"));
}

TEST(SamplesOnce, AnotherPositionBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.attempts[0].ranks[0].Row(40).position = 48;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("is at position 48"));
}

TEST(SamplesOnce, AnUnknownSizeOfTheDataSetIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.FindObserved(events::kRunStarted).fields.erase("samples");
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
}

}  // namespace
}  // namespace shakedown::test_support
