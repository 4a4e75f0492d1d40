#include "harness/plan/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/base/file.h"
#include "harness/plan/print_plan.h"
#include "harness/scenario/library.h"
#include "harness/scenario/parse.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Plans do not depend on the machine that runs the tests.
Machine Able() {
  Machine machine;
  machine.mount_namespace = true;
  machine.user_namespace = true;
  return machine;
}
Machine Unable() {
  Machine machine;
  machine.why_no_mount_namespace = "not root, and a user namespace cannot be made";
  return machine;
}

Scenario Load(const std::string& name, std::vector<std::string> sets = {}) {
  const auto file = FindScenario(name);
  EXPECT_TRUE(file) << name;
  auto parsed = ParseScenarioFile(*file, {.job_file = {}, .sets = std::move(sets)});
  for (const Problem& problem : parsed.problems) ADD_FAILURE() << Describe(problem);
  return parsed.scenario.value_or(Scenario());
}

Plan MakeOrDie(const Scenario& scenario, uint64_t seed = 1, const Machine& machine = Able()) {
  auto plan = MakePlan(scenario, seed, machine);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan.value_or(Plan());
}

std::vector<int> RanksOf(const Plan& plan) {
  std::vector<int> ranks;
  for (const Injection& injection : plan.injections) ranks.push_back(injection.rank);
  return ranks;
}

TEST(MakePlan, ExpandsTargetsIntoOneInjectionEach) {
  const auto ranks = [](const std::string& rank) {
    return RanksOf(MakeOrDie(Load("rank_killed", {"faults.0.at.rank=" + rank})));
  };
  EXPECT_THAT(ranks("1"), ElementsAre(1));
  EXPECT_THAT(ranks("[2, 0]"), ElementsAre(2, 0));
  EXPECT_THAT(ranks("last"), ElementsAre(2));
  EXPECT_THAT(ranks("all"), ElementsAre(0, 1, 2));
  const Plan plan = MakeOrDie(Load("rank_killed", {"faults.0.at.rank=all"}));
  EXPECT_EQ(plan.injections[0].id, 1);
  EXPECT_EQ(plan.injections[2].id, 3);
}

TEST(MakePlan, DrawsAnyFromTheSeedAndReachesEveryRank) {
  const Scenario scenario = Load("rank_killed", {"faults.0.at.rank=any"});
  std::set<int> seen;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const Plan plan = MakeOrDie(scenario, seed);
    EXPECT_EQ(plan.digest, MakeOrDie(scenario, seed).digest);
    ASSERT_EQ(plan.injections.size(), 1U);
    seen.insert(plan.injections[0].rank);
  }
  EXPECT_EQ(seen, (std::set<int>{0, 1, 2}));
}

TEST(MakePlan, AnotherSeedOrAnotherScenarioHasAnotherDigest) {
  const Scenario scenario = Load("rank_killed");
  std::set<std::string> digests = {MakeOrDie(scenario, 1).digest, MakeOrDie(scenario, 2).digest,
                                   MakeOrDie(Load("rank_killed", {"job.steps=59"})).digest,
                                   MakeOrDie(Load("rank_killed", {"expect.restarts=1"})).digest};
  EXPECT_EQ(digests.size(), 4U);
}

TEST(MakePlan, TheDigestDoesNotDependOnWhereFilesLie) {
  Scenario scenario = Load("disk_full");
  const std::string digest = MakeOrDie(scenario).digest;
  scenario.path = "elsewhere.yaml";
  scenario.job.data_dir = "elsewhere";
  EXPECT_EQ(MakeOrDie(scenario).digest, digest);
  EXPECT_EQ(digest.size(), 32U);
}

TEST(MakePlan, TakesTheBestMeansAndNamesAWeakerOne) {
  const Plan best = MakeOrDie(Load("disk_full"));
  EXPECT_EQ(best.injections[0].level, "real");
  EXPECT_EQ(best.injections[0].means, "private tmpfs");
  EXPECT_EQ(best.injections[0].better, "");
  EXPECT_EQ(best.private_fs_bytes, int64_t{16} << 20);

  const Plan weaker = MakeOrDie(Load("disk_full"), 1, Unable());
  EXPECT_EQ(weaker.injections[0].level, "real effect");
  EXPECT_EQ(weaker.injections[0].means, "probe");
  EXPECT_THAT(weaker.injections[0].better, HasSubstr("not root"));
  EXPECT_EQ(weaker.private_fs_bytes, std::nullopt);
  EXPECT_NE(weaker.digest, best.digest);
  EXPECT_THAT(PlanText(weaker, 80), HasSubstr("  how       probe (real effect)\n  better    "));
}

TEST(MakePlan, ThePrivateFilesystemIsAsLargeAsTheLargestFaultWants) {
  const Plan plan = MakeOrDie(Load("disk_full", {"faults.0.with={size: 64MiB}"}));
  EXPECT_EQ(plan.private_fs_bytes, int64_t{64} << 20);
  EXPECT_EQ(MakeOrDie(Load("rank_killed")).private_fs_bytes, std::nullopt);
}

TEST(MakePlan, AHoldIsATenthOfTheShortestTimeoutInPlay) {
  const auto limit = [](const char* name, std::vector<std::string> sets) {
    return MakeOrDie(Load(name, std::move(sets))).hold_limit;
  };
  EXPECT_EQ(limit("rank_killed", {}), milliseconds(100));
  EXPECT_EQ(limit("rank_killed", {"job.timeouts.collective=300ms"}), milliseconds(30));
  EXPECT_EQ(limit("rank_killed", {"job.watchdog=200ms"}), milliseconds(20));
  EXPECT_EQ(limit("rank_killed", {"job.worker_deadline=100ms"}), milliseconds(100));
  EXPECT_EQ(limit("slow_data_worker", {"job.worker_deadline=100ms"}), milliseconds(10));
}

TEST(MakePlan, SurvivesItsOwnJson) {
  const Plan plan = MakeOrDie(Load("slow_data_worker"));
  const auto again = PlanFromJson(ToJson(plan));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(DumpJson(ToJson(*again)), DumpJson(ToJson(plan)));
  EXPECT_EQ(PlanDigest(*again), plan.digest);
}

TEST(MakePlan, ADamagedJsonIsAnError) {
  Json json = ToJson(MakeOrDie(Load("rank_killed")));
  json["injections"][0]["point"] = "collective.entr";
  EXPECT_FALSE(PlanFromJson(json));
  json = ToJson(MakeOrDie(Load("rank_killed")));
  json["scenario"]["expect"].erase("outcome");
  EXPECT_FALSE(PlanFromJson(json));
  EXPECT_FALSE(PlanFromJson(Json::array()));
}

// The saved plan of each smoke scenario. When one is meant to change:
// `SHAKEDOWN_UPDATE_GOLDEN=1 make_plan_test`, and look at the difference.
TEST(MakePlan, ThePlansOfTheSmokeSuiteAreTheSavedOnes) {
  const fs::path folder = fs::path(SHAKEDOWN_SOURCE_DIR) / "tests/golden/plan";
  for (const fs::path& file : ScenarioFiles(ScenarioFolder() / "smoke")) {
    const Plan plan = MakeOrDie(Load(file));
    Json json = PlanJson(plan);
    json["scenario"].erase("path");
    json["scenario"]["job"].erase("data_dir");
    const std::string text = DumpPretty(json) + "\n";
    const fs::path golden = folder / (file.stem().string() + ".json");
    if (std::getenv("SHAKEDOWN_UPDATE_GOLDEN") != nullptr) {
      ASSERT_TRUE(MakeDirectories(folder));
      ASSERT_TRUE(PublishFile(golden, text, Durability::kBuffered));
    }
    EXPECT_EQ(ReadFile(golden).value_or("no golden file"), text) << golden;
  }
}

TEST(PrintPlan, FitsTheWidthThatItIsGiven) {
  for (const fs::path& file : ScenarioFiles(ScenarioFolder())) {
    const std::string text = PlanText(MakeOrDie(Load(file)), 60);
    for (const std::string_view line : SplitLines(text).complete)
      EXPECT_LE(line.size(), 60U) << line;
  }
}

TEST(PrintPlan, SaysWhatIsTouchedWhereAndForHowLong) {
  const std::string text = PlanText(MakeOrDie(Load("disk_full_killed")), 80);
  for (const char* part : {"step 20, checkpoint.write, attempt 0", "until save_failed, at most 2s",
                           "step 25, collective.enter, attempt 0", "until its process ends",
                           "a private filesystem of 16MiB", "signal KILL"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(PlanText(MakeOrDie(Load("slow_data_worker")), 80),
              HasSubstr("data worker 0 of rank 0"));
  EXPECT_THAT(PlanText(MakeOrDie(Load("smoke/control")), 80), HasSubstr("no injection"));
}

}  // namespace
}  // namespace shakedown
