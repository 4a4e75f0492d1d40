#include "harness/run/clean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "harness/base/file.h"
#include "harness/process/spawn.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/run_dir.h"
#include "injectors/undo.h"

namespace shakedown {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class CleanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/clean_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = fs::canonical(name);
  }
  void TearDown() override {
    for (const SpawnedProcess& process : started_) {
      (void)SignalPidfd(process.pidfd.get(), SIGKILL);
      (void)Wait(process.pidfd.get());
    }
    fs::remove_all(folder_);
  }

  // Stands in for a controller or a reaper: ends at once, or runs `script`.
  ProcessIdentity Start(const std::string& script) {
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", script};
    options.environment = {"PATH=/usr/bin:/bin"};
    Result<SpawnedProcess> process = Spawn(options);
    EXPECT_TRUE(process) << process.error().message;
    started_.push_back(*std::move(process));
    return started_.back().identity;
  }
  ProcessIdentity Dead() {
    const ProcessIdentity identity = Start("exit 0");
    EXPECT_TRUE(Wait(started_.back().pidfd.get()));
    started_.pop_back();
    return identity;
  }

  // A run with a tree to remove.
  RunDir MakeRun(const std::string& name, const ProcessIdentity& controller,
                 const std::optional<ProcessIdentity>& reaper = std::nullopt) {
    const RunDir run(folder_ / name);
    EXPECT_TRUE(MakeDirectories(run.root() / "shakedown-tree"));
    Result<JournalWriter> journal = JournalWriter::Open(run.journal());
    EXPECT_TRUE(journal);
    EXPECT_TRUE(journal->Header(ToJson(controller), reaper ? ToJson(*reaper) : Json(),
                                run.root().native()));
    EXPECT_TRUE(journal->Append(
        UndoStep{UndoVerb::kRemoveTree, run.root() / "shakedown-tree", std::nullopt}, 1));
    return run;
  }
  static bool Undone(const RunDir& run) { return !fs::exists(run.root() / "shakedown-tree"); }

  fs::path folder_;
  std::vector<SpawnedProcess> started_;
};

TEST_F(CleanTest, DeadRunsAreUndoneAndLivingOnesAreLeftAloneAndNamed) {
  const RunDir dead = MakeRun("suite/dead", Dead());
  const RunDir live = MakeRun("live", Start("exec sleep 1000"));
  const Result<CleanReport> report = Clean(folder_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->clean());
  ASSERT_THAT(report->runs, SizeIs(1));
  EXPECT_EQ(report->runs[0].run_dir, dead.root().native());
  EXPECT_EQ(report->runs[0].undone, 1);
  EXPECT_TRUE(Undone(dead));
  ASSERT_THAT(report->live, SizeIs(1));
  EXPECT_EQ(report->live[0].run_dir, live.root().native());
  EXPECT_EQ(report->live[0].controller, started_[0].identity);
  EXPECT_FALSE(Undone(live));
  EXPECT_FALSE(fs::exists(live.undone()));
  EXPECT_THAT(Describe(*report), HasSubstr("left alone"));

  const Result<CleanReport> again = Clean(folder_);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->runs, IsEmpty());
}

TEST_F(CleanTest, ControllerWhosePidBelongsToALaterProcessIsDead) {
  ProcessIdentity earlier = Start("exec sleep 1000");
  earlier.start_time -= 1;
  const RunDir run = MakeRun("run", earlier);
  ASSERT_TRUE(Clean(run.root())->clean());
  EXPECT_TRUE(Undone(run));
  EXPECT_FALSE(TryWait(started_[0].pidfd.get())->has_value()) << "the later process must live";
}

TEST_F(CleanTest, ReaperThatIsStillAtWorkIsWaitedFor) {
  // Removes the tree itself, as a reaper does, before it ends.
  const RunDir run(folder_ / "run");
  const ProcessIdentity reaper =
      Start("sleep 0.2; rm -r " + (run.root() / "shakedown-tree").native() + "; exit 0");
  MakeRun("run", Dead(), reaper);
  const Result<CleanReport> report = Clean(folder_);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->clean());
  EXPECT_TRUE(TryWait(started_[0].pidfd.get())->has_value())
      << "clean came before the reaper ended";
}

TEST_F(CleanTest, WhatCannotBeUndoneRemainsAndIsSaid) {
  const RunDir run = MakeRun("run", Dead());
  fs::remove(run.root() / "shakedown-tree");
  ASSERT_TRUE(PublishFile(run.root() / "shakedown-tree", "in its place"));
  const Result<CleanReport> report = Clean(folder_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->clean());
  ASSERT_THAT(report->runs, SizeIs(1));
  ASSERT_THAT(report->runs[0].remains, SizeIs(1));
  EXPECT_THAT(Describe(*report), HasSubstr("remains: "));
  EXPECT_EQ(BoolField(ToJson(*report), "clean"), false);
}

TEST_F(CleanTest, JournalWithoutItsFirstLineIsNotPlayed) {
  const RunDir run = MakeRun("run", Dead());
  std::string text = *ReadFile(run.journal());
  text[5] ^= 1;
  ASSERT_TRUE(PublishFile(run.journal(), text));
  const Result<CleanReport> report = Clean(folder_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->clean());
  EXPECT_THAT(Describe(*report), HasSubstr("does not say which controller"));
  EXPECT_FALSE(Undone(run));
}

TEST_F(CleanTest, JournalOfAnotherUserIsNotPlayed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const RunDir run = MakeRun("run", Dead());
  ASSERT_EQ(::chown(run.journal().c_str(), 65534, 65534), 0);
  const Result<CleanReport> report = Clean(folder_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->clean());
  EXPECT_THAT(Describe(*report), HasSubstr("belongs to user 65534"));
  EXPECT_FALSE(Undone(run));
}

TEST_F(CleanTest, RunBehindALinkIsNotFollowed) {
  const RunDir run = MakeRun("outside/run", Dead());
  fs::create_directories(folder_ / "runs");
  fs::create_directory_symlink(folder_ / "outside", folder_ / "runs" / "link");
  EXPECT_THAT(Clean(folder_ / "runs")->runs, IsEmpty());
  EXPECT_FALSE(Undone(run));
}

TEST_F(CleanTest, EmptyFolderIsCleanAndAMissingOneIsAnError) {
  EXPECT_EQ(Describe(*Clean(folder_)), "nothing to undo\n");
  EXPECT_EQ(Clean(folder_ / "missing").error().code, ENOENT);
  ASSERT_TRUE(PublishFile(folder_ / "file", ""));
  EXPECT_EQ(Clean(folder_ / "file").error().code, ENOTDIR);
}

TEST_F(CleanTest, AbortStopsTheControllerAndUndoesWhatItLeft) {
  const fs::path told = folder_ / "told";
  const ProcessIdentity controller = Start("trap 'echo told > " + told.native() +
                                           "; exit 0' TERM; kill -STOP $$; "
                                           "while :; do sleep 0.01; done");
  const RunDir run = MakeRun("run", controller);
  // Stopped once its trap stands; it acts on SIGTERM when it goes on.
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(controller.pid), &stopped, WSTOPPED | WNOWAIT), 0);
  ASSERT_TRUE(SignalPidfd(started_[0].pidfd.get(), SIGCONT));
  const Result<AbortReport> report = AbortRun(run.root());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->was_running);
  EXPECT_EQ(report->undone, 1);
  EXPECT_THAT(report->remains, IsEmpty());
  EXPECT_TRUE(fs::exists(told));
  EXPECT_TRUE(Undone(run));
  EXPECT_THAT(Describe(*report), HasSubstr("stopped, 1 undone"));
}

TEST_F(CleanTest, ControllerThatDoesNotStopRemainsAndItsRunIsLeftAlone) {
  const ProcessIdentity controller = Start("trap '' TERM; kill -STOP $$; exec sleep 1000");
  const RunDir run = MakeRun("run", controller);
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(controller.pid), &stopped, WSTOPPED | WNOWAIT), 0);
  const Result<AbortReport> report = AbortRun(run.root(), Milliseconds(50));
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_THAT(report->remains, SizeIs(1));
  EXPECT_THAT(report->remains[0], HasSubstr("did not end within 50 ms"));
  EXPECT_FALSE(Undone(run));
}

TEST_F(CleanTest, AbortOfADeadRunUndoesItAndOfNoRunIsAnError) {
  const RunDir run = MakeRun("run", Dead());
  const Result<AbortReport> report = AbortRun(run.root());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->was_running);
  EXPECT_EQ(report->undone, 1);
  EXPECT_THAT(Describe(*report), HasSubstr("was not running"));
  EXPECT_FALSE(AbortRun(folder_));
  EXPECT_FALSE(AbortRun(folder_ / "missing"));
}

}  // namespace
}  // namespace shakedown
