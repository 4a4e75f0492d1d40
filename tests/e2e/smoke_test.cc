// The smoke suite on the real trainer with real data: one verdict for the control and one for each
// fault, and what else the suite promises.
#include <gtest/gtest.h>

#include <map>

#include "tests/e2e/cli.h"

namespace shakedown {
namespace {

// One suite run serves all tests of this file.
const CliResult& Suite() {
  static RunsFolder folder;
  static const CliResult result = Cli({"suite", "smoke", "--json", "--out", folder.str()});
  return result;
}

const Json& RunOf(const std::string& scenario) {
  static const Json kNone;
  for (const Json& run : Field(Suite().json, "runs")) {
    if (StringField(run, "scenario") == scenario) return run;
  }
  return kNone;
}

double Time(const std::string& scenario, const std::string& name) {
  return NumberField(Field(RunOf(scenario), "times"), name).value_or(-1);
}

class Smoke : public ::testing::TestWithParam<std::string> {};

TEST_P(Smoke, PassesAsExpectedWithTheRightDiagnosis) {
  const Json& run = RunOf(GetParam());
  ASSERT_FALSE(run.is_null()) << Suite().out << Suite().err;
  EXPECT_EQ(StringField(run, "verdict"), "PASS") << DumpPretty(run);
  EXPECT_EQ(BoolField(run, "as_expected"), true) << DumpPretty(run);
  EXPECT_EQ(BoolField(run, "dirty"), false);
  EXPECT_EQ(BoolField(Field(run, "quality"), "diagnosis_right"), true)
      << DumpPretty(Field(run, "diagnosis"));
}

TEST_P(Smoke, JudgingAgainFromTheEvidenceGivesTheSameVerdict) {
  const Json& run = RunOf(GetParam());
  const CliResult again = Cli({"check", StringField(run, "run_dir").value_or(""), "--json"});
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(DumpPretty(again.json), DumpPretty(run));
}

INSTANTIATE_TEST_SUITE_P(All, Smoke,
                         ::testing::Values("control", "rank_killed", "collective_timeout",
                                           "hang_watchdog", "disk_full", "disk_full_killed",
                                           "slow_data_worker", "out_of_memory"),
                         [](const auto& test) { return test.param; });

TEST(SmokeSuite, ExitsWithZeroAndRunsTheControlFirst) {
  EXPECT_EQ(Suite().status, 0) << Suite().err;
  EXPECT_EQ(StringField(Suite().json, "verdict"), "PASS");
  ASSERT_TRUE(Field(Suite().json, "runs").is_array());
  EXPECT_EQ(StringField(Field(Suite().json, "runs").at(0), "scenario"), "control");
}

TEST(SmokeSuite, TheCollectiveTimeoutFiresAfterFiveSecondsAndWeNoticeFarEarlier) {
  EXPECT_GE(Time("collective_timeout", "timeout_ms"), 4500);
  EXPECT_LE(Time("collective_timeout", "timeout_ms"), 6500);
  const double noticed =
      NumberField(Field(RunOf("collective_timeout"), "quality"), "noticed_ms").value_or(1e9);
  EXPECT_LE(noticed, 3 * 20 + 1000);
}

TEST(SmokeSuite, EveryInjectionIsProvenAndHoldsLittle) {
  for (const Json& run : Field(Suite().json, "runs")) {
    for (const Json& injection : Field(run, "injections")) {
      EXPECT_EQ(BoolField(injection, "proven"), true) << DumpPretty(run);
      EXPECT_LE(NumberField(injection, "hold_ms").value_or(1e9), 100);
    }
  }
}

}  // namespace
}  // namespace shakedown
