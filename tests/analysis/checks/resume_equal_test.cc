#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/run_dir_builder.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

constexpr char kCheck[] = "resume_equal";

TEST(ResumeEqual, BitEqualRunsPass) {
  for (const RunDirBuilder& run : {RunDirBuilder::Control(), RunDirBuilder::RankKilled(),
                                   RunDirBuilder::DiskFull(), RunDirBuilder::OutOfMemory()}) {
    const Finding finding = JudgeOne(run, kCheck);
    EXPECT_EQ(finding.status, CheckStatus::kPass) << run.plan.scenario.name << finding.reason;
  }
}

TEST(ResumeEqual, TheLearningRateOfTheStepBeforeBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.lr_of_step_before = 1});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("learning rate is not that of the schedule"));
}

TEST(ResumeEqual, AnOlderCheckpointBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.resume_from = 20});
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason,
              HasSubstr("resumed from step 20, the newest complete checkpoint was of step 30"));
}

TEST(ResumeEqual, AnotherCheckpointThanTheScenarioSaysBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.expect().resume_from = 20;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("the scenario expects step 20"));
}

TEST(ResumeEqual, EachColumnOfALedgerRowCounts) {
  const std::vector<std::pair<const char*, void (*)(LedgerStep&)>> kChanges = {
      {"loss", [](LedgerStep& r) { r.loss_bits ^= 1; }},
      {"gradient norm", [](LedgerStep& r) { r.grad_norm_bits ^= 1; }},
      {"weights", [](LedgerStep& r) { r.state.weights.digest.low ^= 1; }},
      {"optimizer", [](LedgerStep& r) { r.state.optimizer.digest.low ^= 1; }},
      {"generator", [](LedgerStep& r) { r.state.rng.digest.high ^= 1; }},
      {"sample order", [](LedgerStep& r) { std::swap(r.ids[0], r.ids[1]); }},
      {"position", [](LedgerStep& r) { r.position += 1; }},
      {"epoch", [](LedgerStep& r) { r.epoch += 1; }},
  };
  for (const auto& [what, change] : kChanges) {
    RunDirBuilder run = RunDirBuilder::RankKilled();
    change(run.attempts[1].ranks[2].Row(45));
    const Finding finding = JudgeOne(run, kCheck);
    EXPECT_EQ(finding.status, CheckStatus::kFail) << what;
    EXPECT_THAT(finding.reason, HasSubstr(what));
    EXPECT_THAT(finding.reason, HasSubstr("rank 2, step 45"));
  }
}

TEST(ResumeEqual, AStateThatIsNotTheLoadedOneBreaks) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  std::get<LedgerStart>(run.attempts[1].ranks[0].ledger[0]).state.optimizer.digest.low ^= 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("state at the start"));
}

TEST(ResumeEqual, AGapBreaks) {
  RunDirBuilder run = RunDirBuilder::Control();
  std::erase_if(run.attempts[0].ranks[1].ledger, [](const LedgerRecord& record) {
    const auto* row = std::get_if<LedgerStep>(&record);
    return row != nullptr && row->step == 33;
  });
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("step 34 where step 33 was due"));
}

TEST(ResumeEqual, AReferenceOfOtherNumericsIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.FindObserved(events::kRunStarted).fields["numerics"]["OMP_NUM_THREADS"] = "4";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("other numerics"));
}

TEST(ResumeEqual, AReferenceWithAnotherKeyIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.key["files"] = "another trainer";
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("another key"));
}

TEST(ResumeEqual, AReferenceThatDoesNotAgreeWithItselfIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.run_json["reference"]["equal"] = false;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("not known to be equal"));
}

TEST(ResumeEqual, FinalWeightsWithinTheToleranceDegrade) {
  RunDirBuilder run = RunDirBuilder::OutOfMemory();
  std::string& bytes = run.attempts[0].ranks[0].weights_end;
  float value = 0;
  std::memcpy(&value, bytes.data() + 40, sizeof value);
  value += 4e-6F;
  std::memcpy(bytes.data() + 40, &value, sizeof value);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kPass) << finding.reason;
}

TEST(ResumeEqual, FinalWeightsBeyondTheToleranceBreak) {
  RunDirBuilder run = RunDirBuilder::OutOfMemory();
  std::string& bytes = run.attempts[0].ranks[2].weights_end;
  const float far = 1e3F;
  std::memcpy(bytes.data() + 40, &far, sizeof far);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("a final weight differs"));
}

TEST(ResumeEqual, FinalWeightsThatAreNotNumbersBreak) {
  RunDirBuilder run = RunDirBuilder::OutOfMemory();
  std::string& bytes = run.attempts[0].ranks[2].weights_end;
  const float none = std::nanf("");
  std::memcpy(bytes.data() + 40, &none, sizeof none);
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("a final weight differs"));
}

TEST(ResumeEqual, BeforeTheFaultATolerancePermitsNothing) {
  RunDirBuilder run = RunDirBuilder::OutOfMemory();
  run.attempts[0].ranks[0].Row(9).loss_bits ^= 1;
  const Finding finding = JudgeOne(run, kCheck);
  EXPECT_EQ(finding.status, CheckStatus::kFail) << finding.reason;
  EXPECT_THAT(finding.reason, HasSubstr("loss"));
}

TEST(ResumeEqual, AChangedBitOfALedgerFileIsNeverAPass) {
  for (const size_t offset : {70U, 300U, 5000U, 7000U}) {
    const Finding finding =
        JudgeOneAfter(RunDirBuilder::RankKilled(), kCheck, [&](const std::filesystem::path& root) {
          std::fstream file(root / "attempt-1/rank-0/ledger.bin",
                            std::ios::in | std::ios::out | std::ios::binary);
          file.seekg(static_cast<std::streamoff>(offset));
          const char byte = static_cast<char>(file.get() ^ 4);
          file.seekp(static_cast<std::streamoff>(offset));
          file.put(byte);
        });
    EXPECT_EQ(finding.status, CheckStatus::kInconclusive) << offset << finding.reason;
  }
}

}  // namespace
}  // namespace shakedown::test_support
