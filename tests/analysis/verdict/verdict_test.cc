#include "analysis/verdict/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "harness/base/file.h"
#include "tests/support/run_dir_builder.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {
namespace {

using ::testing::HasSubstr;

RunVerdict JudgeRun(const RunDirBuilder& run, const JudgeOptions& options = {}) {
  const TempDir folder;
  run.WriteTo(folder.path());
  const Result<RunVerdict> verdict = Judge(RunDir(folder.path()), options);
  SHAKEDOWN_ASSERT(verdict.has_value());
  return *verdict;
}

const CheckResult& Check(const RunVerdict& verdict, std::string_view name) {
  for (const CheckResult& c : verdict.checks) {
    if (c.check == name) return c;
  }
  SHAKEDOWN_ASSERT(false && "no such check");
}

TEST(Judge, ASoundRunPassesWithItsTimes) {
  const RunVerdict v = JudgeRun(RunDirBuilder::RankKilled());
  EXPECT_EQ(v.verdict, Verdict::kPass) << v.reason;
  EXPECT_FALSE(v.dirty);
  ASSERT_EQ(v.injections.size(), 1U);
  EXPECT_TRUE(v.injections[0].proven);
  EXPECT_EQ(v.injections[0].hold_ms, 2.0);
  EXPECT_EQ(v.times.lost_steps, 8);
  ASSERT_TRUE(v.times.first_new_step_ms.has_value());
  EXPECT_GT(*v.times.first_new_step_ms, 380);
  EXPECT_LT(*v.times.first_new_step_ms, 420);
  ASSERT_TRUE(v.times.rework_ms.has_value());
  EXPECT_NEAR(*v.times.rework_ms, 160, 1);
  ASSERT_TRUE(v.times.detected_ms.has_value());
  EXPECT_LT(*v.times.detected_ms, 10);
  ASSERT_EQ(v.attempts.size(), 2U);
  EXPECT_EQ(v.attempts[0].last_step, 38);
  EXPECT_EQ(v.attempts[1].resumed_from, 30);
}

TEST(Judge, AnUndisturbedRunPassesWithoutTimesOfAFault) {
  const RunVerdict v = JudgeRun(RunDirBuilder::Control());
  EXPECT_EQ(v.verdict, Verdict::kPass) << v.reason;
  EXPECT_FALSE(v.times.detected_ms.has_value());
  EXPECT_FALSE(v.noticed_ms.has_value());
  EXPECT_TRUE(v.injections.empty());
}

TEST(Judge, TheHarnesssOwnNoticeIsMeasured) {
  const RunVerdict v = JudgeRun(RunDirBuilder::CollectiveTimeout());
  EXPECT_EQ(v.verdict, Verdict::kPass) << v.reason;
  ASSERT_TRUE(v.noticed_ms.has_value());
  EXPECT_NEAR(*v.noticed_ms, 1000, 1);
  ASSERT_TRUE(v.times.timeout_ms.has_value());
  EXPECT_NEAR(*v.times.timeout_ms, 5011, 1);
}

// The four defects that prove the method, each found by the right check.
TEST(Judge, PlantedDefectsFailEachByTheRightCheck) {
  struct Case {
    JobShape shape;
    const char* check;
  };
  const Case kCases[] = {{{.resume_from = 0}, "checkpoint_safe"},
                         {{.last_step = 59}, "outcome_reached"},
                         {{.lr_of_step_before = 1}, "resume_equal"},
                         {{.resume_from = 20}, "resume_equal"}};
  for (const Case& c : kCases) {
    const RunVerdict v = JudgeRun(RunDirBuilder::RankKilled(c.shape));
    EXPECT_EQ(v.verdict, Verdict::kFail) << c.check << v.reason;
    EXPECT_EQ(Check(v, c.check).finding.status, CheckStatus::kFail) << c.check;
    EXPECT_FALSE(v.as_expected);
  }
}

TEST(Judge, AStepBeyondTheEndIsInvalidAndDependentChecksAreNotJudged) {
  RunDirBuilder run = RunDirBuilder::Control();
  Injection kill;
  kill.id = 1;
  kill.fault = "rank.kill";
  kill.step = 75;
  kill.point = Point::kCollectiveEnter;
  run.plan.injections.push_back(kill);
  run.expect().outcome = Outcome::kRecovers;
  Event missed;
  missed.name = secret_events::kFaultMissed;
  missed.fields = {{"injection", 1}, {"reason", "its point was never reached"}};
  run.injected.push_back(missed);
  const RunVerdict v = JudgeRun(run);
  EXPECT_EQ(v.verdict, Verdict::kInvalid);
  EXPECT_THAT(v.reason, HasSubstr("never reached"));
  EXPECT_EQ(Check(v, "outcome_reached").finding.status, CheckStatus::kNotJudged);
  EXPECT_EQ(Check(v, "nothing_left").finding.status, CheckStatus::kPass);
  EXPECT_FALSE(v.injections[0].proven);
  EXPECT_EQ(v.diagnosis_right, std::nullopt);
}

TEST(Judge, AnotherVerdictThanPassCanBeWhatIsExpected) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.lr_of_step_before = 1});
  run.expect().verdict = "FAIL";
  run.expect().check = "resume_equal";
  run.expect().reason = "learning rate";
  RunVerdict v = JudgeRun(run);
  EXPECT_EQ(v.verdict, Verdict::kFail);
  if (v.diagnosis_right == true) {
    EXPECT_TRUE(v.as_expected) << v.not_as_expected;
  }

  run.expect().reason = "optimizer";
  v = JudgeRun(run);
  EXPECT_FALSE(v.as_expected);
  EXPECT_THAT(v.not_as_expected, HasSubstr("another reason"));
}

TEST(Judge, AFailureBesideTheExpectedOneMustBeListed) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.resume_from = 20});
  run.expect().verdict = "FAIL";
  run.expect().check = "resume_equal";
  RunVerdict v = JudgeRun(run);
  EXPECT_THAT(v.not_as_expected, HasSubstr("recovered_in_budget broke beside"));
  run.expect().also_fails = {"recovered_in_budget"};
  v = JudgeRun(run);
  EXPECT_THAT(v.not_as_expected, ::testing::Not(HasSubstr("beside")));
}

TEST(Judge, AWaivedCheckIsListedAndDoesNotFailTheRunUntilItsDay) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.expect().recovery_budget = std::chrono::milliseconds(1);
  run.plan.scenario.waive = {{"recovered_in_budget", "slow machine", "2026-06-30"}};
  JudgeOptions options;
  options.today = WallTime{int64_t{1'780'000'000} * 1'000'000'000};  // 2026-05-28
  RunVerdict v = JudgeRun(run, options);
  EXPECT_EQ(v.verdict, Verdict::kPass) << v.reason;
  EXPECT_EQ(Check(v, "recovered_in_budget").finding.status, CheckStatus::kFail);
  EXPECT_THAT(Check(v, "recovered_in_budget").waived, HasSubstr("slow machine"));

  options.today = WallTime{int64_t{1'785'000'000} * 1'000'000'000};  // 2026-07-25
  v = JudgeRun(run, options);
  EXPECT_EQ(v.verdict, Verdict::kFail);
}

TEST(Judge, WhatWasNotUndoneIsDirtyBesideItsVerdict) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  run.journal.push_back({{"seq", 1}, {"injection", 1}, {"step", {{"verb", "remove_file"}}}});
  RunVerdict v = JudgeRun(run);
  EXPECT_TRUE(v.dirty);
  EXPECT_EQ(v.verdict, Verdict::kPass) << v.reason;
  EXPECT_EQ(ExitCodeOf(v.verdict, v.dirty), kExitDirty);
  EXPECT_FALSE(v.as_expected);

  run.journal.push_back({{"seq", 1}, {"undone", true}});
  v = JudgeRun(run);
  EXPECT_FALSE(v.dirty);
}

TEST(Judge, AnInterruptedRunIsInconclusiveAndJudgesNothing) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.FindObserved(events::kRunEnded).fields = {{"how", "interrupted"}, {"reason", "SIGINT"}};
  const RunVerdict v = JudgeRun(run);
  EXPECT_EQ(v.verdict, Verdict::kInconclusive);
  EXPECT_THAT(v.reason, HasSubstr("SIGINT"));
  EXPECT_EQ(Check(v, "resume_equal").finding.status, CheckStatus::kNotJudged);
}

TEST(Judge, AFailureOfTheHarnessIsAnError) {
  JudgeOptions options;
  options.harness_error = "the run directory is full";
  const RunVerdict v = JudgeRun(RunDirBuilder::RankKilled(), options);
  EXPECT_EQ(v.verdict, Verdict::kError);
  EXPECT_THAT(v.reason, HasSubstr("the run directory is full"));
}

TEST(Judge, EvidenceThatChangedAfterTheSealIsNeverAPass) {
  const TempDir folder;
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.WriteTo(folder.path());
  ASSERT_TRUE(PublishFile(folder.path() / "attempt-1/rank-0/stdout.log", "late\n").has_value());
  const Result<RunVerdict> v = Judge(RunDir(folder.path()));
  ASSERT_TRUE(v.has_value());
  EXPECT_EQ(v->verdict, Verdict::kInconclusive);
  EXPECT_THAT(v->reason, HasSubstr("stdout.log"));
}

TEST(Judge, WithoutItsObservedEvidenceARunIsInconclusiveAndTheReasonSaysWhatLiesThere) {
  const TempDir folder;
  RunDirBuilder::RankKilled().WriteTo(folder.path());
  const RunDir run(folder.path());
  const auto reason = [&] {
    const Result<RunVerdict> v = Judge(run);
    EXPECT_TRUE(v.has_value());
    EXPECT_EQ(v->verdict, Verdict::kInconclusive);
    EXPECT_EQ(v->scenario, "rank_killed");
    return v->reason;
  };
  std::filesystem::remove(run.observed());
  EXPECT_THAT(reason(), HasSubstr("cannot open 'observed.jsonl': No such file"));
  ASSERT_EQ(::mkfifo(run.observed().c_str(), 0600), 0);
  EXPECT_THAT(reason(), HasSubstr("not a regular file: a FIFO"));
  std::filesystem::remove(run.observed());
  std::filesystem::create_symlink(run.run_json(), run.observed());
  EXPECT_THAT(reason(), HasSubstr("not a regular file: a symlink"));
}

TEST(Judge, ARunThatWasNeverSealedIsNoPass) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.write_seal = false;
  const RunVerdict v = JudgeRun(run);
  EXPECT_EQ(v.verdict, Verdict::kInconclusive);

  const TempDir folder;
  RunDirBuilder::Control().WriteTo(folder.path());
  const RunDir sealed(folder.path());
  Json seal = ParseJson(ReadFile(sealed.seal()).value()).value();
  seal["attempts"] = Json::array();
  std::ofstream(sealed.seal()) << DumpJson(seal);
  EXPECT_EQ(Judge(sealed)->verdict, Verdict::kInconclusive);
}

TEST(Judge, ADamagedUndoJournalIsNoPass) {
  const TempDir folder;
  RunDirBuilder run = RunDirBuilder::DiskFull();
  run.journal.push_back({{"seq", 1}, {"injection", 1}, {"step", {{"verb", "remove_file"}}}});
  run.journal.push_back({{"seq", 1}, {"undone", true}});
  run.WriteTo(folder.path());
  const RunDir written(folder.path());
  ASSERT_EQ(Judge(written)->verdict, Verdict::kPass) << Judge(written)->reason;
  std::string journal = ReadFile(written.journal()).value();
  journal[journal.size() / 2] ^= 1;
  std::ofstream(written.journal(), std::ios::binary) << journal;
  const Result<RunVerdict> v = Judge(written);
  EXPECT_EQ(v->verdict, Verdict::kInconclusive);
  EXPECT_THAT(v->reason, HasSubstr("journal.jsonl"));
  EXPECT_TRUE(v->dirty);
}

TEST(Judge, CleanIsOnlyAdvisedWhereTheJournalSaysThatSomethingIsLeft) {
  RunDirBuilder run = RunDirBuilder::DiskFull();
  std::erase_if(run.observed, [](const Event& e) { return e.name == events::kRunEnded; });
  RunVerdict v = JudgeRun(run);
  EXPECT_EQ(v.verdict, Verdict::kInconclusive);
  EXPECT_EQ(v.reason, "the controller ended without saying how");
  EXPECT_FALSE(v.dirty);

  run.journal.push_back({{"seq", 1}, {"injection", 1}, {"step", {{"verb", "remove_file"}}}});
  v = JudgeRun(run);
  EXPECT_THAT(v.reason, HasSubstr("run `shakedown clean`"));
  EXPECT_TRUE(v.dirty);
}

TEST(Judge, AFolderThatIsNoRunIsAnError) {
  const TempDir folder;
  EXPECT_FALSE(Judge(RunDir(folder.path())).has_value());
}

TEST(RunVerdictJson, HoldsTheContractsFieldsAndComesBack) {
  const RunVerdict v = JudgeRun(RunDirBuilder::RankKilled());
  const Json json = ToJson(v);
  for (const char* name : {"schema_version", "scenario", "verdict", "as_expected", "dirty",
                           "reason", "run_dir", "seed", "plan_digest", "injections", "checks",
                           "diagnosis", "quality", "times", "attempts"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_TRUE(json["times"]["timeout_ms"].is_null());
  EXPECT_TRUE(json["diagnosis"]["culprits"].is_array());
  const Result<RunVerdict> back = RunVerdictFromJson(json);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(DumpJson(ToJson(*back)), DumpJson(json));
}

TEST(RunVerdictJson, AnythingElseIsAnErrorAndNoCrash) {
  for (const char* text : {"null", "[]", "{}", "{\"verdict\": \"MAYBE\"}", "7"}) {
    EXPECT_FALSE(RunVerdictFromJson(*ParseJson(text)).has_value()) << text;
  }
}

RunVerdict Ended(Verdict verdict, bool as_expected) {
  RunVerdict v;
  v.verdict = verdict;
  v.as_expected = as_expected;
  return v;
}

TEST(Suite, ARunCountsByWhatWasExpectedOfIt) {
  EXPECT_EQ(CountsAs(Ended(Verdict::kFail, true)), Verdict::kPass);
  EXPECT_EQ(CountsAs(Ended(Verdict::kPass, false)), Verdict::kFail);
  EXPECT_EQ(CountsAs(Ended(Verdict::kInvalid, false)), Verdict::kInvalid);
  EXPECT_EQ(CountsAs(Ended(Verdict::kPass, false), SuiteRole::kCanary), Verdict::kError);
  EXPECT_EQ(CountsAs(Ended(Verdict::kSkipped, true)), Verdict::kSkipped);
}

TEST(Suite, TheHeaviestVerdictWinsAndSkippedIsNoPass) {
  using V = Verdict;
  EXPECT_EQ(MergeVerdicts({V::kPass, V::kFail, V::kError}), V::kFail);
  EXPECT_EQ(MergeVerdicts({V::kInvalid, V::kError, V::kPass}), V::kError);
  EXPECT_EQ(MergeVerdicts({V::kInvalid, V::kInconclusive}), V::kInvalid);
  EXPECT_EQ(MergeVerdicts({V::kInconclusive, V::kPass}), V::kInconclusive);
  EXPECT_EQ(MergeVerdicts({V::kPass, V::kSkipped}), V::kPass);
  EXPECT_EQ(MergeVerdicts({V::kSkipped}), V::kSkipped);
  EXPECT_EQ(MergeVerdicts({}), V::kSkipped);
}

TEST(Repeat, DisagreementIsUnstableAndTheWorstVerdictCounts) {
  std::vector<RunVerdict> runs(3, Ended(Verdict::kPass, true));
  runs[0].times.first_new_step_ms = 400;
  runs[1].times.first_new_step_ms = 500;
  runs[2].times.first_new_step_ms = 900;
  EXPECT_FALSE(MergeRepeats(runs).unstable);
  runs[1].verdict = Verdict::kFail;
  const RepeatVerdict merged = MergeRepeats(runs);
  EXPECT_TRUE(merged.unstable);
  EXPECT_EQ(merged.verdict, Verdict::kFail);
  EXPECT_EQ(merged.counts["PASS"], 2);
  EXPECT_EQ(merged.counts["FAIL"], 1);
  EXPECT_EQ(merged.spread["first_new_step_ms"]["median"], 500);
}

TEST(ExitCode, FollowsTheVerdictAndDirtyWins) {
  EXPECT_EQ(ExitCodeOf(Verdict::kPass, false), 0);
  EXPECT_EQ(ExitCodeOf(Verdict::kFail, false), 1);
  EXPECT_EQ(ExitCodeOf(Verdict::kInvalid, false), 3);
  EXPECT_EQ(ExitCodeOf(Verdict::kInconclusive, false), 4);
  EXPECT_EQ(ExitCodeOf(Verdict::kError, false), 5);
  EXPECT_EQ(ExitCodeOf(Verdict::kSkipped, false), 77);
  EXPECT_EQ(ExitCodeOf(Verdict::kFail, true), 6);
}

}  // namespace
}  // namespace shakedown::test_support
