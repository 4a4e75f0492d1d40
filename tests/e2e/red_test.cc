// The other side: what must not pass. Each test starts from the scenario rank_killed, which passes
// (smoke_test), and changes one thing.
#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/file.h"
#include "harness/run/seal.h"
#include "tests/e2e/cli.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

CliResult RankKilled(const RunsFolder& folder, std::vector<std::string> more,
                     std::vector<std::string> environment = {}) {
  std::vector<std::string> arguments = {"run", "rank_killed", "--json", "--out", folder.str()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Cli(arguments, std::move(environment));
}

TEST(Red, AStepBeyondTheEndOfTheJobIsInvalid) {
  const RunsFolder folder;
  const CliResult run =
      RankKilled(folder, {"--set", "faults.0.at.step=61", "--set", "faults.0.at.committed=60"});
  EXPECT_EQ(run.status, 3) << run.out << run.err;
  EXPECT_EQ(StringField(run.json, "verdict"), "INVALID");
  EXPECT_EQ(StatusOf(run.json, "fault_proven"), "INVALID");
}

TEST(Red, ASignalThatIsSwallowedIsInvalid) {
  const RunsFolder folder;
  // The trainer handles SIGTERM: it goes on to the end of the step and saves.
  const CliResult run = RankKilled(folder, {"--set", "faults.0.with.signal=TERM"});
  EXPECT_EQ(run.status, 3) << run.out << run.err;
  EXPECT_EQ(StringField(run.json, "verdict"), "INVALID");
  EXPECT_EQ(StatusOf(run.json, "fault_proven"), "INVALID");
}

TEST(Red, ABudgetOfOneMillisecondFailsRecoveredInBudget) {
  const RunsFolder folder;
  const CliResult run = RankKilled(folder, {"--set", "expect.budget.recovery=1ms"});
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  EXPECT_EQ(StatusOf(run.json, "recovered_in_budget"), "FAIL");
}

// One sound run; each test damages a copy of its evidence.
class RedEvidence : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new RunsFolder;
    const CliResult run = RankKilled(*folder_, {});
    ASSERT_EQ(run.status, 0) << run.out << run.err;
    sound_ = *StringField(run.json, "run_dir");
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override {
    copy_ = folder_->path() / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::copy(sound_, copy_, fs::copy_options::recursive);
  }
  CliResult Check() { return Cli({"check", copy_.native(), "--json"}); }

  // Removes the lines that name the event from the logs of all ranks of attempt 0.
  void RemoveLines(const std::string& event) {
    int removed = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const fs::path path = RunDir(copy_).rank(0, rank) / kRankLog;
      std::string kept;
      const std::string text = ReadFile(path).value();
      for (const std::string_view line : SplitLines(text).complete) {
        if (line.find("\"" + event + "\"") != std::string_view::npos) {
          ++removed;
        } else {
          kept += std::string(line) + "\n";
        }
      }
      std::ofstream(path, std::ios::binary | std::ios::trunc) << kept;
    }
    ASSERT_GT(removed, 0);
  }
  // As if the evidence had been so when the attempts ended.
  void SealAgain() {
    Seal seal{RunDir(copy_)};
    ASSERT_TRUE(seal.Attempt(0));
    ASSERT_TRUE(seal.Attempt(1));
    ASSERT_TRUE(seal.Run());
  }
  // And as if the lines had never arrived.
  void ForgetArrivals(const std::string& file_part) {
    const fs::path path = RunDir(copy_).observed();
    std::string kept;
    const std::string text = ReadFile(path).value();
    for (const std::string_view line : SplitLines(text).complete) {
      const bool drop = line.find("\"line.arrived\"") != std::string_view::npos &&
                        line.find(file_part) != std::string_view::npos;
      if (!drop) kept += std::string(line) + "\n";
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << kept;
  }

  static RunsFolder* folder_;
  static fs::path sound_;
  fs::path copy_;
};
RunsFolder* RedEvidence::folder_ = nullptr;
fs::path RedEvidence::sound_;

TEST_F(RedEvidence, TheSoundRunPassesFromItsEvidence) {
  const CliResult again = Check();
  EXPECT_EQ(again.status, 0) << again.out;
}

TEST_F(RedEvidence, ErrorLinesThatWereNeverWrittenFail) {
  RemoveLines("peer.lost");
  ForgetArrivals("attempt-0/rank-");
  SealAgain();
  const CliResult again = Check();
  EXPECT_EQ(again.status, 1) << again.out;
  EXPECT_EQ(StatusOf(again.json, "failure_logged"), "FAIL");
}

TEST_F(RedEvidence, ErrorLinesDeletedAfterTheSealAreInconclusive) {
  RemoveLines("peer.lost");
  const CliResult again = Check();
  EXPECT_EQ(again.status, 4) << again.out;
}

TEST_F(RedEvidence, AChangedLedgerBitNeverPasses) {
  const fs::path path = RunDir(copy_).rank(1, 2) / kRankLedger;
  std::string bytes = ReadFile(path).value();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  const CliResult after_seal = Check();
  EXPECT_NE(after_seal.status, 0);
  EXPECT_EQ(StringField(after_seal.json, "verdict"), "INCONCLUSIVE");
  SealAgain();
  const CliResult before_seal = Check();
  EXPECT_TRUE(before_seal.status == 1 || before_seal.status == 4) << before_seal.out;
}

}  // namespace
}  // namespace shakedown
