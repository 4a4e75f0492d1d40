// Reading run directories: sound ones, and those that somebody has tampered with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "analysis/evidence/folder.h"
#include "analysis/evidence/observed.h"
#include "analysis/evidence/reference.h"
#include "analysis/evidence/seal.h"
#include "analysis/evidence/secret.h"
#include "harness/base/file.h"
#include "tests/support/run_dir_builder.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void Append(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

class Evidence : public ::testing::Test {
 protected:
  Evidence() { RunDirBuilder::RankKilled().WriteTo(folder_.path()); }
  ObservedEvidence Observed() { return *LoadObserved(run_); }

  TempDir folder_;
  RunDir run_{folder_.path()};
};

TEST_F(Evidence, EverythingOfASoundRunIsRead) {
  const ObservedEvidence observed = Observed();
  EXPECT_TRUE(observed.has_observed);
  EXPECT_TRUE(observed.damage.empty()) << observed.damage[0].what;
  ASSERT_TRUE(observed.job.has_value());
  EXPECT_EQ(observed.samples, 1797);
  ASSERT_EQ(observed.attempts.size(), 2U);
  const ProcessEvidence* rank = observed.attempts[1].rank(2);
  ASSERT_NE(rank, nullptr);
  ASSERT_TRUE(rank->ledger && rank->ledger->start && rank->ledger->end);
  EXPECT_EQ(rank->ledger->start->step, 30U);
  EXPECT_EQ(rank->ledger->steps.size(), 30U);
  EXPECT_NE(rank->ledger->Find(60), nullptr);
  EXPECT_EQ(rank->ledger->Find(61), nullptr);
  EXPECT_EQ(observed.exits.size(), 6U);
  EXPECT_EQ(observed.exits[0].signal, "SIGKILL");
  EXPECT_TRUE(observed.exits[0].independent());
}

TEST_F(Evidence, LinesGetTheTimeOfTheirArrival) {
  for (const LogLine* line : Observed().AllLines()) {
    ASSERT_TRUE(line->arrived.has_value());
    EXPECT_EQ(*line->arrived - line->t, Milliseconds(1));
  }
}

TEST_F(Evidence, ALineThatWasTakenOutLeavesTheOthersTheirTimeAndIsDamage) {
  const fs::path log = run_.rank(0, 0) / kRankLog;
  const std::string text = *ReadFile(log);
  const size_t second = text.find('\n') + 1;
  std::ofstream(log) << text.substr(second);
  const ObservedEvidence observed = Observed();
  for (const LogLine& line : observed.attempts[0].rank(0)->log) EXPECT_TRUE(line.arrived);
  ASSERT_EQ(observed.damage.size(), 1U);
  EXPECT_EQ(observed.damage[0].where.file, "attempt-0/rank-0/log.jsonl");
  EXPECT_EQ(observed.damage[0].where.line, 1);
}

TEST_F(Evidence, ATornLastRecordOfAKilledWriterIsNoDamage) {
  Append(run_.rank(0, 1) / kRankLog, "{\"t_ns\": 1, \"lev");
  Append(run_.rank(0, 1) / kRankLedger, std::string(10, '\x20'));
  const ObservedEvidence observed = Observed();
  EXPECT_TRUE(observed.damage.empty());
  EXPECT_TRUE(observed.attempts[0].rank(1)->ledger->torn_tail);
}

TEST_F(Evidence, RecordsThatCannotBeReadAreDamageWithTheirPlace) {
  Append(run_.observed(), "no json\n{\"t_ns\": 1}\n{\"t_ns\":1,\"event\":\"process.exited\"}\n");
  Append(run_.checkpoints(), "[]\n");
  Append(run_.rank(1, 0) / kRankLog, "plain text\n");
  EXPECT_EQ(Observed().damage.size(), 5U);
}

TEST_F(Evidence, AFlippedBitInALedgerMakesItUnreadable) {
  const fs::path file = run_.rank(1, 0) / kRankLedger;
  std::string bytes = *ReadFile(file);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  const ObservedEvidence observed = Observed();
  EXPECT_FALSE(observed.attempts[1].rank(0)->ledger.has_value());
  ASSERT_EQ(observed.damage.size(), 1U);
  EXPECT_EQ(observed.damage[0].where.file, "attempt-1/rank-0/ledger.bin");
}

TEST_F(Evidence, TheLedgerOfAnotherRankIsNotTaken) {
  fs::copy_file(run_.rank(1, 0) / kRankLedger, run_.rank(1, 1) / kRankLedger,
                fs::copy_options::overwrite_existing);
  const ObservedEvidence observed = Observed();
  EXPECT_FALSE(observed.attempts[1].rank(1)->ledger.has_value());
}

TEST_F(Evidence, LinksAreNotFollowed) {
  const TempDir outside;
  std::ofstream(outside.path() / "secret") << "{\"event\": \"x\", \"level\": \"ERROR\"}\n";
  fs::remove(run_.rank(1, 0) / kRankLog);
  fs::create_symlink(outside.path() / "secret", run_.rank(1, 0) / kRankLog);
  fs::rename(run_.rank(1, 2), folder_.path() / "moved");
  fs::create_directory_symlink(folder_.path() / "moved", run_.rank(1, 2));
  const ObservedEvidence observed = Observed();
  EXPECT_TRUE(observed.attempts[1].rank(0)->log.empty());
  EXPECT_EQ(observed.attempts[1].rank(2), nullptr);
  EXPECT_FALSE(observed.damage.empty());
}

TEST_F(Evidence, AFifoInThePlaceOfAFileDoesNotHang) {
  fs::remove(run_.rank(1, 0) / kRankStdout);
  ASSERT_EQ(::mkfifo((run_.rank(1, 0) / kRankStdout).c_str(), 0600), 0);
  EXPECT_EQ(Observed().damage.size(), 1U);
}

// Puts something else in the place of a file; returns what a reader has to say about it.
using Replace = std::string (*)(const fs::path& file, const fs::path& outside);
const Replace kReplacements[] = {[](const fs::path& file, const fs::path&) -> std::string {
                                   SHAKEDOWN_ASSERT(::mkfifo(file.c_str(), 0600) == 0);
                                   return "not a regular file: a FIFO";
                                 },
                                 [](const fs::path& file, const fs::path& outside) -> std::string {
                                   fs::create_symlink(outside, file);
                                   return "not a regular file: a symlink";
                                 },
                                 [](const fs::path& file, const fs::path&) -> std::string {
                                   fs::create_directory(file);
                                   return "not a regular file: a directory";
                                 },
                                 [](const fs::path& file, const fs::path&) -> std::string {
                                   std::ofstream(file).close();
                                   fs::resize_file(file,
                                                   uintmax_t{1} << 40);  // a hole: it takes no room
                                   return "more than the limit of";
                                 }};

TEST_F(Evidence, WhatLiesInThePlaceOfAFileIsNamedAndNeverFollowed) {
  const TempDir outside;
  for (const Replace replace : kReplacements) {
    for (const fs::path& file :
         {run_.observed(), run_.injected(), run_.run_json(), run_.checkpoints(),
          run_.rank(1, 0) / kRankLog, run_.rank(1, 0) / kRankLedger, run_.journal()}) {
      const fs::path kept = outside.path() / "kept";
      fs::rename(file, kept);
      const std::string what = replace(file, kept);
      std::vector<Damage> damage = Observed().damage;
      const SecretEvidence secret = LoadSecret(run_);
      damage.insert(damage.end(), secret.damage.begin(), secret.damage.end());
      const std::string name = file.lexically_relative(run_.root());
      bool named = false;
      for (const Damage& d : damage) {
        named |=
            d.where.file == name && d.where.line == 0 && d.what.find(what) != std::string::npos;
      }
      EXPECT_TRUE(named) << name << ": " << what;
      if (file == run_.run_json()) {
        EXPECT_THAT(secret.plan_problem, HasSubstr(what));
      }
      if (file == run_.injected()) {
        EXPECT_THAT(secret.injected_problem, HasSubstr(what));
      }
      if (file != run_.journal()) {
        EXPECT_THAT(VerifySeal(run_).Describe(name), HasSubstr("is not what was sealed: "));
        EXPECT_THAT(VerifySeal(run_).Describe(name), HasSubstr(what));
      }
      fs::remove(file);
      fs::rename(kept, file);
    }
  }
}

TEST_F(Evidence, AFolderOfARankThatIsALinkIsNamed) {
  const TempDir outside;
  fs::rename(run_.rank(1, 0), outside.path() / "moved");
  fs::create_directory_symlink(outside.path() / "moved", run_.rank(1, 0));
  EXPECT_THAT(VerifySeal(run_).Describe("attempt-1/rank-0/ledger.bin"),
              HasSubstr("'rank-0' is not a directory: a symlink"));
}

TEST_F(Evidence, ARunWithoutItsObservedEvidenceIsARunAllTheSame) {
  fs::remove(run_.observed());
  const Result<ObservedEvidence> observed = LoadObserved(run_);
  ASSERT_TRUE(observed.has_value());
  EXPECT_FALSE(observed->has_observed);
  ASSERT_NE(observed->Unreadable("observed.jsonl"), nullptr);
}

TEST_F(Evidence, ObservedEvidenceNeedsNoSecretFile) {
  for (const fs::path& secret : {run_.run_json(), run_.injected(), run_.journal()}) {
    fs::remove(secret);
  }
  EXPECT_TRUE(Observed().damage.empty());
}

TEST(EvidenceOfNothing, AFolderWithoutARunIsAnError) {
  const TempDir folder;
  EXPECT_FALSE(LoadObserved(RunDir(folder.path())).has_value());
  EXPECT_FALSE(LoadObserved(RunDir(folder.path() / "absent")).has_value());
}

TEST_F(Evidence, PathsThatLeadOutAreRefused) {
  const Result<EvidenceFolder> folder = EvidenceFolder::Open(folder_.path());
  ASSERT_TRUE(folder.has_value());
  EXPECT_FALSE(folder->Read(folder_.path() / ".." / "x", 10).has_value());
  EXPECT_FALSE(folder->Read("/etc/hostname", 1000).has_value());
  EXPECT_FALSE(folder->Read(run_.observed(), 10).has_value());
  EXPECT_TRUE(folder->Read(run_.observed(), 100'000'000).has_value());
}

TEST_F(Evidence, SecretEvidenceIsRead) {
  const SecretEvidence secret = LoadSecret(run_);
  ASSERT_TRUE(secret.plan.has_value()) << secret.plan_problem;
  EXPECT_EQ(secret.injected.size(), 1U);
  EXPECT_EQ(secret.witnessed.size(), 3U);
  EXPECT_TRUE(secret.journal.pending.empty());
  EXPECT_TRUE(secret.damage.empty());
}

TEST_F(Evidence, AReferenceOfTheSameNumericsIsUsable) {
  const ObservedEvidence observed = Observed();
  const SecretEvidence secret = LoadSecret(run_);
  EXPECT_EQ(LoadReference(run_, observed, secret.run).unusable, "");
  fs::remove(run_.reference() / "rank-1" / kRankLedger);
  EXPECT_THAT(LoadReference(run_, observed, secret.run).unusable, HasSubstr("rank-1"));
  fs::remove(run_.reference() / "key.json");
  EXPECT_THAT(LoadReference(run_, observed, secret.run).unusable, HasSubstr("key.json"));
}

TEST_F(Evidence, TheSealTellsAbsentBeforeFromAbsentAfter) {
  fs::remove(run_.rank(1, 0) / kRankLedger);
  Append(run_.launcher_log(0), "{}\n");
  std::ofstream(run_.rank(0, 0) / kRankStderr) << "later";
  const SealReport seal = VerifySeal(run_);
  EXPECT_TRUE(seal.present);
  EXPECT_EQ(seal.StateOf("attempt-1/rank-0/ledger.bin"), SealState::kGone);
  EXPECT_EQ(seal.StateOf("attempt-0/launcher.jsonl"), SealState::kChanged);
  EXPECT_EQ(seal.StateOf("attempt-0/rank-0/stderr.log"), SealState::kChanged);
  EXPECT_EQ(seal.StateOf("attempt-1/rank-1/stacks.txt"), SealState::kAbsentAtSeal);
  EXPECT_EQ(seal.StateOf("attempt-1/rank-1/ledger.bin"), SealState::kIntact);
  EXPECT_EQ(seal.StateOf("attempt-7/launcher.jsonl"), SealState::kUnsealed);
  EXPECT_EQ(seal.Tampered().size(), 3U);
}

TEST_F(Evidence, ASealThatIsMissingOrSpoiledCoversNothing) {
  std::ofstream(run_.seal()) << "{\"attempts\": 7}";
  EXPECT_EQ(VerifySeal(run_).StateOf("observed.jsonl"), SealState::kUnsealed);
  fs::remove(run_.seal());
  EXPECT_FALSE(VerifySeal(run_).present);
  EXPECT_EQ(VerifySeal(run_).StateOf("observed.jsonl"), SealState::kUnsealed);
}

TEST_F(Evidence, ASealThatNamesFilesOutsideReadsNone) {
  std::ofstream(run_.seal())
      << R"({"run": {"files": [{"name": "../../../etc/passwd", "bytes": 1, "sha256": "x"}]}})";
  const SealReport seal = VerifySeal(run_);
  EXPECT_EQ(seal.StateOf("../../../etc/passwd"), SealState::kChanged);
}

}  // namespace
}  // namespace shakedown::test_support
