// Every planted defect of the job (trainer/defects/catalog.def) is caught by the check that must
// catch it, for the stated reason; the same scenario on the sound job passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/base/file.h"
#include "tests/e2e/cli.h"
#include "trainer/defects/defect.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Case {
  Defect defect;
  std::string name;
  std::string scenario;
  std::vector<std::string> settings;  // of --set
  std::string check;                  // that must catch it
  std::string reason;                 // part of what it says
  std::set<std::string> also;         // checks that may fail with it, as a consequence
  std::string verdict = "FAIL";
};

const std::vector<std::string> kSecondEpoch = {"faults.0.at.step=45", "faults.0.at.committed=40",
                                               "expect.resume.from=40"};

// What a job breaks that fails again after each restart until none is left.
const std::set<std::string> kGivesUp = {
    "checkpoint_safe", "outcome_reached", "restart_budget", "recovered_in_budget",
    "resume_equal",    "samples_once",    "exit_truthful",  "save_errors_surface",
    "failure_logged",  "nothing_left",    "replicas_equal"};

// And one whose failed save nobody hears of, so that the disk stays full until its end.
const std::set<std::string> kSaveFails = {"detected",        "failure_logged",
                                          "outcome_reached", "restart_budget",
                                          "checkpoint_safe", "recovered_in_budget"};

std::vector<Case> Cases() {
  using enum Defect;
  return {
#define CASE(defect, ...) {defect, #defect, __VA_ARGS__}
      CASE(kStartsFromZero, "rank_killed", {}, "checkpoint_safe", "silently started from step 0",
           {"resume_equal", "recovered_in_budget"}),
      CASE(kLoadsOlderCheckpoint, "rank_killed", {}, "resume_equal", "", {"recovered_in_budget"}),
      CASE(kRanksDisagree, "rank_killed", {}, "replicas_equal",
           "different optimizer state at the start", kGivesUp),
      CASE(kSkipsBatch, "rank_killed", {}, "samples_once", "", {"resume_equal"}),
      CASE(kRepeatsBatch, "rank_killed", {}, "samples_once", "", {"resume_equal"}),
      CASE(kRecordsPlannedIds, "rank_killed", {}, "resume_equal", "", {}),
      CASE(kForgetsEpoch, "rank_killed", kSecondEpoch, "samples_once", "", {"resume_equal"}),
      CASE(kForgetsLearningRate, "rank_killed", {}, "resume_equal", "", {}),
      CASE(kForgetsGenerator, "rank_killed", {}, "resume_equal", "", {}),
      CASE(kForgetsOptimizer, "rank_killed", {}, "resume_equal", "", {}),
      CASE(kOptimizerStepOffByOne, "rank_killed", {}, "resume_equal", "", {}),
      CASE(kMomentsSwapped, "rank_killed", {}, "resume_equal", "", kGivesUp),
      CASE(kEndsEarly, "control", {}, "outcome_reached", "", {}),
      CASE(kStaleLearningRate, "control", {}, "resume_equal", "", {}),
      CASE(kSameSeedOnEveryRank, "control", {}, "replicas_equal", "generator", {}),
      // Nothing can be proved with a job that does not train.
      CASE(kNeverAppliesGradients, "control", {}, "assumptions", "the weights did not change", {},
           "INVALID"),
      CASE(kReplicaDrifts, "control", {}, "replicas_equal", "hold different weights",
           {"resume_equal", "checkpoint_safe"}),
      CASE(kUnequalBatches, "rank_killed", {"job.timeouts.collective=2s"}, "outcome_reached", "",
           kGivesUp),
      CASE(kDropsBatchWhenOutOfMemory, "out_of_memory", {}, "resume_equal", "", {}),
      CASE(kReplacedWorkerLosesItsBatch, "slow_data_worker", {}, "samples_once", "",
           {"resume_equal", "outcome_reached", "exit_truthful", "failure_logged"}),
      CASE(kReplacedWorkerRepeatsABatch, "slow_data_worker", {}, "samples_once", "",
           {"resume_equal"}),
      CASE(kPublishesBeforeWriting, "disk_full_killed", {}, "checkpoint_safe", "published", {}),
      CASE(kTrustsManifest, "disk_full_killed", {}, "checkpoint_safe", "published",
           {"outcome_reached", "replicas_equal", "samples_once", "resume_equal",
            "recovered_in_budget", "restart_budget", "exit_truthful", "failure_logged"}),
      CASE(kSavesWithoutSnapshot, "rank_killed", {}, "checkpoint_safe", "does not hold",
           {"resume_equal"}),
      CASE(kSavesOldState, "rank_killed", {}, "checkpoint_safe", "does not hold", {"resume_equal"}),
      CASE(kRoundsToBfloat16, "rank_killed", {}, "checkpoint_safe", "does not hold the weights",
           {"resume_equal"}),
      CASE(kManifestOfOtherContent, "rank_killed", {}, "checkpoint_safe", "the digest of tensor",
           kGivesUp),
      CASE(kRotatesBeforeSaving, "disk_full", {}, "checkpoint_safe", "no complete checkpoint", {}),
      CASE(kRecordsFailedSave, "disk_full", {}, "save_errors_surface", "", kSaveFails),
      CASE(kReportsFailedSaveAtEnd, "disk_full", {}, "save_errors_surface", "", kSaveFails),
      CASE(kOtherTimeout, "collective_timeout", {"expect.budget.recovery=30s"}, "timeout_effective",
           "", {"detected", "failure_logged"}),
      CASE(kHeartbeatWithoutProgress, "hang_watchdog",
           {"job.timeouts.collective=5s", "expect.budget.recovery=30s",
            "expect.detected.within=30s"},
           "timeout_effective", "", {"failure_logged"}),
      CASE(kExitsZeroAfterFailure, "rank_killed", {}, "exit_truthful", "", {}),
      CASE(kExitsOneAfterSuccess, "control", {"job.restart.policy=none"}, "outcome_reached",
           "exit status 1", {"failure_logged"}),
      CASE(kLogsWrongRank, "rank_killed", {}, "failure_logged", "as rank 0", {}),
      CASE(kLogsWrongStep, "rank_killed", {}, "failure_logged", "", {}),
      CASE(kLogsErrorsAsInfo, "rank_killed", {}, "failure_logged", "", {"detected"}),
      CASE(kLeavesProcess, "control", {}, "nothing_left", "", {}),
      CASE(kLeavesTemporaryFile, "control", {}, "nothing_left", "", {}),
      CASE(kHidesSignal, "rank_killed", {}, "exit_truthful", "", {"failure_logged"}),
      CASE(kBlamesPeers, "rank_killed", {}, "failure_logged", "", {}),
      CASE(kOverwritesFirstLog, "rank_killed", {}, "failure_logged", "", {"detected"}),
      CASE(kLosesRankLog, "rank_killed", {}, "failure_logged", "", {"detected"}),
      CASE(kRestartsWithoutEnd, "rank_killed_no_restart", {}, "restart_budget", "",
           {"outcome_reached"}),
      CASE(kKeepsStore, "rank_killed", {}, "restart_budget", "store", kGivesUp),
#undef CASE
  };
}

std::vector<std::string> Arguments(const Case& c, const RunsFolder& folder) {
  std::vector<std::string> out = {"run", c.scenario, "--json", "--out", folder.str() + "/runs"};
  for (const std::string& setting : c.settings) {
    out.push_back("--set");
    out.push_back(setting);
  }
  return out;
}

// The program in a folder of its own, so that its ".acted" is this test's.
fs::path PutProgram(const RunsFolder& folder, Defect defect) {
  const bool launcher = defect >= Defect::kHidesSignal;
  const fs::path built = fs::path(SHAKEDOWN_BINARY_DIR) / "tests/e2e" /
                         ((launcher ? "launch-" : "trainer-") + std::to_string(int(defect)));
  const fs::path own = folder.path() / "program";
  fs::create_directory(own);
  fs::copy_file(built, own / "it");
  for (const char* beside : {"shakedown-data-worker", "shakedown-trainer"}) {
    fs::create_symlink(Program(beside), own / beside);
  }
  return own / "it";
}

class PlantedDefect : public ::testing::TestWithParam<Case> {};

TEST_P(PlantedDefect, IsCaughtForTheStatedReason) {
  const Case& c = GetParam();
  const RunsFolder folder;
  const fs::path program = PutProgram(folder, c.defect);
  const char* variable =
      c.defect >= Defect::kHidesSignal ? "SHAKEDOWN_LAUNCHER" : "SHAKEDOWN_TRAINER";
  const CliResult run = Cli(Arguments(c, folder), {std::string(variable) + "=" + program.native()});
  EXPECT_EQ(run.status, c.verdict == "FAIL" ? 1 : 3) << run.out << run.err;
  EXPECT_EQ(StringField(run.json, "verdict"), c.verdict);
  EXPECT_EQ(StatusOf(run.json, c.check), c.verdict) << run.out;
  EXPECT_THAT(StringField(CheckOf(run.json, c.check), "reason").value_or(""), HasSubstr(c.reason));
  for (const Json& check : Field(run.json, "checks")) {
    const std::string name = StringField(check, "check").value_or("");
    if (StringField(check, "status") != "FAIL" || name == c.check) continue;
    EXPECT_TRUE(c.also.contains(name)) << name << ": " << DumpJson(check);
  }
  EXPECT_TRUE(fs::exists(program.parent_path() / ".acted")) << "the defect never acted";
}

INSTANTIATE_TEST_SUITE_P(All, PlantedDefect, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name.substr(1); });

TEST(PlantedDefects, EachOfTheCatalogueHasItsCase) {
  std::set<int> covered;
  for (const Case& c : Cases()) covered.insert(static_cast<int>(c.defect));
#define DEFECT(constant, what) EXPECT_TRUE(covered.contains(int(Defect::constant))) << #constant;
#include "trainer/defects/catalog.def"
#undef DEFECT
}

// Scenarios with settings; those as shipped are smoke_test's.
class SoundTwin : public ::testing::TestWithParam<Case> {};

TEST_P(SoundTwin, Passes) {
  const RunsFolder folder;
  const CliResult run = Cli(Arguments(GetParam(), folder));
  EXPECT_EQ(run.status, 0) << run.out << run.err;
}

std::vector<Case> WithSettings() {
  std::map<std::pair<std::string, std::vector<std::string>>, Case> different;
  for (const Case& c : Cases()) {
    const bool shipped_in_smoke = c.scenario != "rank_killed_no_restart";
    if (!c.settings.empty() || !shipped_in_smoke)
      different.try_emplace({c.scenario, c.settings}, c);
  }
  std::vector<Case> out;
  for (const auto& [key, c] : different) out.push_back(c);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, SoundTwin, ::testing::ValuesIn(WithSettings()),
                         [](const auto& test) { return test.param.name.substr(1); });

}  // namespace
}  // namespace shakedown
