// What every check must do, run over the whole catalog: pass on sound runs, be inconclusive without
// evidence, and never crash on evidence that somebody has spoiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/checks/catalog.h"
#include "analysis/checks/run_checks.h"
#include "harness/base/file.h"
#include "harness/base/random.h"
#include "tests/support/run_dir_builder.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<RunDirBuilder> SoundRuns() {
  return {RunDirBuilder::Control(),           RunDirBuilder::RankKilled(),
          RunDirBuilder::CollectiveTimeout(), RunDirBuilder::HangWatchdog(),
          RunDirBuilder::DiskFull(),          RunDirBuilder::SlowDataWorker(),
          RunDirBuilder::OutOfMemory()};
}

std::vector<Checked> JudgeFolder(const fs::path& root) {
  const RunDir run(root);
  const Result<ObservedEvidence> observed = LoadObserved(run);
  if (!observed) return {};
  const SecretEvidence secret = LoadSecret(run);
  const ReferenceEvidence reference = LoadReference(run, *observed, secret.run);
  const SealReport seal = VerifySeal(run);
  const Timeline timeline = BuildTimeline(*observed, secret);
  const LoadReport load = MeasureLoad(*observed);
  return RunChecks({*observed, secret, reference, seal, timeline, load});
}

TEST(CheckContract, EachCheckDeclaresItself) {
  for (const CheckInfo* check : CheckCatalog()) {
    EXPECT_FALSE(check->name.empty());
    EXPECT_TRUE(check->promise.ends_with(".")) << check->name;
    EXPECT_FALSE(check->evidence.empty()) << check->name;
    EXPECT_NE(check->function, nullptr) << check->name;
    EXPECT_EQ(FindCheck(check->name), check);
    for (const Need need : check->evidence) EXPECT_FALSE(ToString(need).empty());
    for (const CheckParameter& parameter : check->parameters) {
      EXPECT_TRUE(parameter.key.starts_with("expect.")) << check->name;
      EXPECT_FALSE(parameter.otherwise.empty()) << check->name;
    }
  }
  EXPECT_EQ(CheckCatalog().size(), 15U);
}

TEST(CheckContract, TheCatalogIsInTheOrderOfJudging) {
  const auto catalog = CheckCatalog();
  EXPECT_EQ(catalog[0]->name, "assumptions");
  EXPECT_EQ(catalog[1]->name, "fault_proven");
  for (size_t i = 1; i < catalog.size(); ++i) {
    EXPECT_LE(catalog[i - 1]->check_class, catalog[i]->check_class);
  }
}

TEST(CheckContract, SoundRunsKeepEveryPromiseAndEachCheckPassesInOneOfThem) {
  std::map<std::string_view, int> passed;
  for (const RunDirBuilder& run : SoundRuns()) {
    const TempDir folder;
    run.WriteTo(folder.path());
    for (const Checked& checked : JudgeFolder(folder.path())) {
      const CheckStatus status = checked.finding.status;
      EXPECT_TRUE(status == CheckStatus::kPass || status == CheckStatus::kNotApplicable)
          << run.plan.scenario.name << ": " << checked.check->name << " is " << ToString(status)
          << ": " << checked.finding.reason;
      if (status == CheckStatus::kPass) {
        EXPECT_GE(checked.finding.compared, 1) << checked.check->name;
        ++passed[checked.check->name];
      }
    }
  }
  for (const CheckInfo* check : CheckCatalog()) EXPECT_GE(passed[check->name], 1) << check->name;
}

TEST(CheckContract, EmptyEvidenceIsInconclusive) {
  const TempDir folder;
  ASSERT_TRUE(PublishFile(folder.path() / "observed.jsonl", "").has_value());
  const std::vector<Checked> checked = JudgeFolder(folder.path());
  ASSERT_EQ(checked.size(), CheckCatalog().size());
  for (const Checked& c : checked) {
    EXPECT_EQ(c.finding.status, CheckStatus::kInconclusive) << c.check->name;
    EXPECT_THAT(c.finding.reason, HasSubstr("evidence is missing")) << c.check->name;
  }
}

TEST(CheckContract, WithoutASealEverythingIsInconclusive) {
  RunDirBuilder run = RunDirBuilder::RankKilled();
  run.write_seal = false;
  const TempDir folder;
  run.WriteTo(folder.path());
  for (const Checked& c : JudgeFolder(folder.path())) {
    EXPECT_EQ(c.finding.status, CheckStatus::kInconclusive) << c.check->name;
  }
}

// Each file that a check declares to need, changed after the seal, takes its PASS away.
TEST(CheckContract, EvidenceThatChangedAfterTheSealIsInconclusive) {
  const std::vector<std::string> kFiles = {"observed.jsonl",
                                           "injected.jsonl",
                                           "run.json",
                                           "checkpoints.jsonl",
                                           "attempt-0/launcher.jsonl",
                                           "attempt-1/rank-0/log.jsonl",
                                           "attempt-1/rank-2/ledger.bin",
                                           "attempt-1/rank-1/weights-end.bin",
                                           "reference/rank-1/ledger.bin",
                                           "reference/key.json"};
  for (const std::string& file : kFiles) {
    const TempDir folder;
    RunDirBuilder::RankKilled().WriteTo(folder.path());
    const std::vector<Checked> before = JudgeFolder(folder.path());
    std::ofstream(folder.path() / file, std::ios::app) << "\n";
    const std::vector<Checked> after = JudgeFolder(folder.path());
    int changed = 0;
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i].finding.status == before[i].finding.status) continue;
      EXPECT_EQ(after[i].finding.status, CheckStatus::kInconclusive)
          << file << ": " << after[i].check->name << ": " << after[i].finding.reason;
      ++changed;
    }
    EXPECT_GE(changed, 1) << file;
  }
}

Finding Throws(const CheckInput&) { throw std::runtime_error("a bug"); }
Finding PassesOnNothing(const CheckInput&) {
  Finding finding;
  finding.status = CheckStatus::kPass;
  finding.compared = 2;
  finding.least = 3;
  return finding;
}
Finding Fails(const CheckInput&) {
  Finding finding;
  finding.status = CheckStatus::kFail;
  return finding;
}

class CheckRunner : public ::testing::Test {
 protected:
  Finding Run(Finding (*function)(const CheckInput&), bool by_time = false) {
    const CheckInfo info{.name = "made_up", .by_time = by_time, .function = function};
    return RunCheck(info, {observed_, secret_, reference_, seal_, timeline_, load_});
  }
  ObservedEvidence observed_;
  SecretEvidence secret_;
  ReferenceEvidence reference_;
  SealReport seal_;
  Timeline timeline_;
  LoadReport load_;
};

TEST_F(CheckRunner, ACheckThatThrowsIsInconclusive) {
  const Finding finding = Run(Throws);
  EXPECT_EQ(finding.status, CheckStatus::kInconclusive);
  EXPECT_THAT(finding.reason, HasSubstr("a bug"));
}

TEST_F(CheckRunner, APassThatComparedTooLittleIsInconclusive) {
  EXPECT_EQ(Run(PassesOnNothing).status, CheckStatus::kInconclusive);
}

TEST_F(CheckRunner, OverloadTurnsOnlyChecksByTimeInconclusive) {
  EXPECT_EQ(Run(Fails, true).status, CheckStatus::kFail);
  load_.overloaded = true;
  EXPECT_EQ(Run(Fails, true).status, CheckStatus::kInconclusive);
  EXPECT_EQ(Run(Fails, false).status, CheckStatus::kFail);
}

TEST(CheckContract, AFaultThatIsNotProvenLeavesDependentChecksNotJudgedAndListsBrokenPromises) {
  RunDirBuilder run = RunDirBuilder::RankKilled({.lr_of_step_before = 1});
  run.FindInjected(secret_events::kWitnessed, 0).fields["holds"] = false;
  const TempDir folder;
  run.WriteTo(folder.path());
  for (const Checked& c : JudgeFolder(folder.path())) {
    if (c.check->name == "fault_proven") {
      EXPECT_EQ(c.finding.status, CheckStatus::kInvalid);
    }
    if (c.check->name == "resume_equal") {
      EXPECT_EQ(c.finding.status, CheckStatus::kFail);
    }
    if (c.check->name == "detected") {
      EXPECT_EQ(c.finding.status, CheckStatus::kNotJudged);
    }
    if (c.check->name == "nothing_left") {
      EXPECT_EQ(c.finding.status, CheckStatus::kPass);
    }
  }
}

// Spoils a file in one of the ways in which files get spoiled.
void Spoil(const fs::path& file, Random* random) {
  Result<std::string> read = ReadFile(file);
  ASSERT_TRUE(read.has_value());
  std::string bytes = *read;
  switch (random->Below(5)) {
    case 0:
      bytes.resize(random->Below(bytes.size() + 1));
      break;
    case 1:
      for (int i = 0; i < 20 && !bytes.empty(); ++i) {
        bytes[random->Below(bytes.size())] = static_cast<char>(random->Next());
      }
      break;
    case 2:
      bytes = "{\"t_ns\": -1, \"event\": [], \"lanes\": 7, \"checkpoints\": \"x\"}\n";
      break;
    case 3:
      bytes.append(bytes.substr(0, 4096));
      break;
    default:
      // Every number becomes another type or the largest of all.
      for (size_t at = 0; (at = bytes.find(": ", at)) != std::string::npos; ++at) {
        if (random->Below(8) == 0) bytes.replace(at, 2, ": 9223372036854775807, \"x\": ");
      }
      for (size_t at = 0; (at = bytes.find("\":1", at)) != std::string::npos; ++at) {
        if (random->Below(8) == 0) bytes.replace(at, 3, "\":18446744073709551615");
      }
  }
  ASSERT_TRUE(PublishFile(file, bytes, Durability::kBuffered).has_value());
}

// No seal, so that the checks do look at what is spoiled instead of stopping at the seal: it is
// made anew over the spoiled files.
TEST(CheckContract, SpoiledEvidenceNeverCrashesACheck) {
  Random random(7);
  const std::vector<RunDirBuilder> runs = SoundRuns();
  for (int round = 0; round < 60; ++round) {
    const TempDir folder;
    runs[random.Below(runs.size())].WriteTo(folder.path());
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (int i = 0; i < 3; ++i) Spoil(files[random.Below(files.size())], &random);
    SealAgain(folder.path());
    const std::vector<Checked> checked = JudgeFolder(folder.path());
    EXPECT_TRUE(checked.empty() || checked.size() == CheckCatalog().size());
  }
}

}  // namespace
}  // namespace shakedown::test_support
