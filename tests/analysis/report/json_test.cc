// The command line contract: names, order, and what absence looks like.
#include "analysis/report/json.h"

#include <gmock/gmock.h>

#include "tests/analysis/report/sample_runs.h"

namespace shakedown::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(JsonReport, SchemaVersionStandsFirstInEveryObject) {
  const Json suite = SuiteJson(test_support::SampleSuite());
  for (const Json& object : {RunJson(test_support::KilledRun()), suite, suite["runs"][0],
                             RepeatJson(test_support::SampleRepeat()),
                             DiagnosisJson(test_support::KilledRun().diagnosis)}) {
    EXPECT_EQ(Keys(object).front(), "schema_version");
    EXPECT_EQ(object["schema_version"], 1);
  }
}

TEST(JsonReport, RunHoldsTheContract) {
  const Json run = RunJson(test_support::KilledRun());
  EXPECT_THAT(Keys(run), IsSupersetOf({"scenario", "verdict", "as_expected", "dirty", "reason",
                                       "run_dir", "seed", "plan_digest", "injections", "checks",
                                       "diagnosis", "quality", "times", "attempts"}));
  EXPECT_THAT(Keys(run["injections"][0]),
              IsSupersetOf({"fault", "id", "rank", "step", "point", "attempt", "level", "means",
                            "hold_ms", "proven"}));
  EXPECT_THAT(Keys(run["checks"][0]),
              IsSupersetOf({"check", "status", "reason", "expected", "observed", "unit", "compared",
                            "least", "where"}));
  EXPECT_THAT(Keys(run["diagnosis"]),
              IsSupersetOf({"culprits", "mechanism", "cascade", "confidence", "runbook"}));
  EXPECT_THAT(Keys(run["quality"]), IsSupersetOf({"noticed_ms", "diagnosis_right"}));
  EXPECT_THAT(Keys(run["times"]), IsSupersetOf({"detected_ms", "timeout_ms", "first_new_step_ms",
                                                "lost_steps", "rework_ms", "wall_ms"}));
}

TEST(JsonReport, AbsentIsNullAndCulpritsIsAList) {
  const Json run = RunJson(test_support::ControlRun());
  EXPECT_TRUE(run["times"]["detected_ms"].is_null());
  EXPECT_TRUE(run["quality"]["noticed_ms"].is_null());
  EXPECT_TRUE(run["diagnosis"]["culprits"].is_array());
  EXPECT_TRUE(run["diagnosis"]["runbook"].is_null());
}

TEST(JsonReport, SuiteCountsVerdictsAndLevelsApart) {
  const Json suite = SuiteJson(test_support::SampleSuite());
  EXPECT_THAT(Keys(suite), IsSupersetOf({"suite", "verdict", "runs", "counts", "wall_ms"}));
  EXPECT_EQ(suite["counts"], (Json{{"pass", 2},
                                   {"fail", 1},
                                   {"error", 0},
                                   {"invalid", 1},
                                   {"inconclusive", 0},
                                   {"skipped", 1}}));
  EXPECT_EQ(suite["levels"],
            (Json{{"real", 1}, {"real effect", 0}, {"simulated", 1}, {"not proven", 1}}));
  EXPECT_EQ(suite["dirty"], true);
}

TEST(JsonReport, RepeatListsItsRunsAndTheirSpread) {
  const Json repeat = RepeatJson(test_support::SampleRepeat());
  EXPECT_EQ(repeat["runs"].size(), 3u);
  EXPECT_EQ(repeat["unstable"], true);
  EXPECT_EQ(repeat["spread"]["detected_ms"]["median"], 12.5);
}

TEST(JsonReport, DiagnosisHoldsTheContract) {
  const Json diagnosis = DiagnosisJson(test_support::KilledRun().diagnosis);
  EXPECT_THAT(Keys(diagnosis), IsSupersetOf({"culprits", "mechanism", "chain", "cascade",
                                             "confidence", "missing", "runbook"}));
  EXPECT_EQ(diagnosis["culprits"][0]["kind"], "rank");
  EXPECT_EQ(diagnosis["culprits"][0]["rank"], 1);
  EXPECT_THAT(Keys(diagnosis["chain"][0]),
              ElementsAre("t_ms", "role", "attempt", "rank", "what", "where"));
}

TEST(JsonReport, RunReadsBack) {
  const Result<RunVerdict> back = RunVerdictFromJson(RunJson(test_support::KilledRun()));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->diagnosis, test_support::KilledRun().diagnosis);
}

}  // namespace
}  // namespace shakedown::report
