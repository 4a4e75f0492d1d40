// The smoke suite on the real trainer with real data: one verdict for the control and one for each
// fault, and what else the suite promises.
#include <gtest/gtest.h>

#include "tests/e2e/cli.h"

namespace shakedown {
namespace {

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

// One test, so that the suite runs once: ctest starts a process for each TEST.
TEST(SmokeSuite, PassesAsExpectedWithTheRightDiagnosisAndFromItsEvidenceAlone) {
  ASSERT_EQ(Suite().status, 0) << Suite().out << Suite().err;
  EXPECT_EQ(StringField(Suite().json, "verdict"), "PASS");
  ASSERT_TRUE(Field(Suite().json, "runs").is_array());
  EXPECT_EQ(StringField(Field(Suite().json, "runs").at(0), "scenario"), "control");
  for (const char* scenario :
       {"control", "rank_killed", "collective_timeout", "hang_watchdog", "disk_full",
        "disk_full_killed", "slow_data_worker", "out_of_memory"}) {
    SCOPED_TRACE(scenario);
    const Json& run = RunOf(scenario);
    ASSERT_FALSE(run.is_null());
    EXPECT_EQ(StringField(run, "verdict"), "PASS") << DumpPretty(run);
    EXPECT_EQ(BoolField(run, "as_expected"), true) << DumpPretty(run);
    EXPECT_EQ(BoolField(run, "dirty"), false);
    EXPECT_EQ(BoolField(Field(run, "quality"), "diagnosis_right"), true)
        << DumpPretty(Field(run, "diagnosis"));
    for (const Json& injection : Field(run, "injections")) {
      EXPECT_EQ(BoolField(injection, "proven"), true) << DumpPretty(run);
      EXPECT_LE(NumberField(injection, "hold_ms").value_or(1e9), 100);
    }
    const CliResult again = Cli({"check", StringField(run, "run_dir").value_or(""), "--json"});
    EXPECT_EQ(again.status, 0);
    EXPECT_EQ(DumpPretty(again.json), DumpPretty(run)) << "judged again";
  }
  // The configured timeout fired, and we noticed far earlier: within 3 step times and 1 s.
  EXPECT_GE(Time("collective_timeout", "timeout_ms"), 4500);
  EXPECT_LE(Time("collective_timeout", "timeout_ms"), 6500);
  const double noticed =
      NumberField(Field(RunOf("collective_timeout"), "quality"), "noticed_ms").value_or(1e9);
  EXPECT_LE(noticed, 3 * 20 + 1000);
}

}  // namespace
}  // namespace shakedown
