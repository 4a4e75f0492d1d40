#include "injectors/undo.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/base/file.h"
#include "harness/process/mount_namespace.h"
#include "harness/process/spawn.h"
#include "harness/wire/journal_record.h"
#include "injectors/play_journal.h"

namespace shakedown {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class Undo : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/undo_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = fs::canonical(name);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static UndoStep Ballast(const fs::path& path, std::optional<ProcessIdentity> holder = {}) {
    return {UndoVerb::kRemoveBallast, path.native(), std::move(holder)};
  }
  static UndoStep Tree(const fs::path& path) {
    return {UndoVerb::kRemoveTree, path.native(), std::nullopt};
  }
  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path) << text;
    ASSERT_TRUE(fs::exists(path));
  }

  fs::path folder_;
};

// --- remove_ballast

TEST_F(Undo, BallastIsRemovedAndRemovingItAgainIsNoError) {
  const fs::path ballast = folder_ / ".shakedown-ballast";
  Write(ballast, std::string(1 << 20, 'b'));
  ASSERT_TRUE(PlayUndo(Ballast(ballast)));
  EXPECT_FALSE(fs::exists(ballast));
  EXPECT_TRUE(PlayUndo(Ballast(ballast)));
  EXPECT_TRUE(PlayUndo(Ballast(folder_ / "gone" / ".shakedown-ballast")));
}

TEST_F(Undo, HalfRemovedBallastIsRemoved) {
  const fs::path ballast = folder_ / ".shakedown-ballast";
  Write(ballast, "");  // truncated, not unlinked
  ASSERT_TRUE(PlayUndo(Ballast(ballast)));
  EXPECT_FALSE(fs::exists(ballast));
}

TEST_F(Undo, SpaceOfABallastThatAnotherProcessHasOpenComesBack) {
  const fs::path ballast = folder_ / ".shakedown-ballast";
  Write(ballast, std::string(1 << 20, 'b'));
  const UniqueFd other(::open(ballast.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(PlayUndo(Ballast(ballast)));
  struct stat st {};
  ASSERT_EQ(::fstat(other.get(), &st), 0);
  EXPECT_EQ(st.st_blocks, 0);
}

TEST_F(Undo, BallastWithAWrongNameIsRefusedAndStays) {
  for (const char* name :
       {"ballast", "shakedown-ballast", "x.shakedown-ballast", ".shakedownballast"}) {
    Write(folder_ / name, "precious");
    const Status status = PlayUndo(Ballast(folder_ / name));
    ASSERT_FALSE(status) << name;
    EXPECT_THAT(status.error().message, HasSubstr("does not begin with '.shakedown-'"));
    EXPECT_EQ(*ReadFile(folder_ / name), "precious");
  }
}

TEST_F(Undo, PathThatIsNotCanonicalIsRefused) {
  for (const std::string& path :
       {std::string(".shakedown-b"), std::string(), folder_.native() + "/x/../.shakedown-b",
        folder_.native() + "//.shakedown-b", folder_.native() + "/./.shakedown-b",
        folder_.native() + "/.shakedown-b/", folder_.native() + "/.shakedown-b" + '\0'}) {
    EXPECT_EQ(PlayUndo(Ballast(path)).error().code, EINVAL) << path;
  }
}

TEST_F(Undo, LinkInThePlaceOfTheBallastIsNotFollowed) {
  Write(folder_ / "precious", "precious");
  fs::create_symlink(folder_ / "precious", folder_ / ".shakedown-ballast");
  const Status status = PlayUndo(Ballast(folder_ / ".shakedown-ballast"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ELOOP);
  EXPECT_EQ(*ReadFile(folder_ / "precious"), "precious");
}

TEST_F(Undo, LinkOnTheWayToTheBallastIsNotFollowed) {
  fs::create_directory(folder_ / "real");
  Write(folder_ / "real" / ".shakedown-ballast", "precious");
  fs::create_directory_symlink(folder_ / "real", folder_ / "link");
  const Status status = PlayUndo(Ballast(folder_ / "link" / ".shakedown-ballast"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ELOOP);
  EXPECT_EQ(*ReadFile(folder_ / "real" / ".shakedown-ballast"), "precious");
}

TEST_F(Undo, SecondNameOfAFileIsNoBallast) {
  Write(folder_ / "precious", "precious");
  fs::create_hard_link(folder_ / "precious", folder_ / ".shakedown-ballast");
  const Status status = PlayUndo(Ballast(folder_ / ".shakedown-ballast"));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("a second name"));
  EXPECT_EQ(*ReadFile(folder_ / "precious"), "precious");
}

TEST_F(Undo, DirectoryFifoAndSocketAreNoBallastAndDoNotBlock) {
  const fs::path path = folder_ / ".shakedown-ballast";
  fs::create_directory(path);
  EXPECT_FALSE(PlayUndo(Ballast(path)));
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(PlayUndo(Ballast(path)));
  EXPECT_TRUE(fs::exists(path));
}

// A process with a private tmpfs, entered before the test speaks to it.
class HeldFilesystem {
 public:
  HeldFilesystem(const fs::path& mountpoint, int64_t bytes, uid_t user) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      ::_exit(Hold(mountpoint, bytes, user, ends[1]));
    }
    ::close(ends[1]);
    socket_.Reset(ends[0]);
    char ready = 0;
    ok_ = ::read(socket_.get(), &ready, 1) == 1;
    identity_ = *IdentityOf(pid_);
  }
  ~HeldFilesystem() { End(); }
  void End() {
    if (pid_ < 0) return;
    socket_.Reset();
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  bool ok() const { return ok_; }
  const ProcessIdentity& identity() const { return identity_; }
  fs::path Seen(const fs::path& path) const {
    return "/proc/" + std::to_string(identity_.pid) + "/root" + path.native();
  }

 private:
  static int Hold(const fs::path& mountpoint, int64_t bytes, uid_t user, int socket) {
    // For good, not only for now. An exec, which we leave out, would make it dumpable again.
    if (user != 0 && (::seteuid(0) != 0 || ::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 ||
                      ::setuid(user) != 0 || ::prctl(PR_SET_DUMPABLE, 1) != 0)) {
      return 1;
    }
    if (!EnterPrivateMounts() || !MountPrivateTmpfs(mountpoint, bytes)) return 1;
    char byte = 'r';
    if (::write(socket, &byte, 1) != 1) return 1;
    return ::read(socket, &byte, 1) == 0 ? 0 : 1;
  }

  pid_t pid_ = -1;
  bool ok_ = false;
  UniqueFd socket_;
  ProcessIdentity identity_;
};

// As the user in question throughout: root does not exist in another user's user namespace.
class UndoInHolder : public Undo, public ::testing::WithParamInterface<uid_t> {
 protected:
  void SetUp() override {
    if (GetParam() != 0 && ::geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
    Undo::SetUp();
    if (GetParam() == 0) return;
    ASSERT_EQ(::chown(folder_.c_str(), GetParam(), GetParam()), 0);
    ASSERT_EQ(::setegid(GetParam()), 0);
    ASSERT_EQ(::seteuid(GetParam()), 0);
  }
  void TearDown() override {
    if (GetParam() != 0 && ::getuid() == 0) {
      EXPECT_EQ(::seteuid(0), 0);
      EXPECT_EQ(::setegid(0), 0);
    }
    Undo::TearDown();
  }
};

TEST_P(UndoInHolder, BallastOnAFullPrivateFilesystemIsRemovedAndItsSpaceComesBack) {
  HeldFilesystem held(folder_, 1 << 20, GetParam());
  ASSERT_TRUE(held.ok());
  const fs::path ballast = folder_ / ".shakedown-ballast";
  const UniqueFd file(::open(held.Seen(ballast).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  const std::string block(1 << 16, 'b');
  while (::write(file.get(), block.data(), block.size()) > 0) continue;
  ASSERT_EQ(errno, ENOSPC);
  struct statfs full {};
  ASSERT_EQ(::statfs(held.Seen(folder_).c_str(), &full), 0);
  ASSERT_EQ(full.f_bfree, 0u);

  ASSERT_TRUE(PlayUndo(Ballast(ballast, held.identity())));
  struct statfs freed {};
  ASSERT_EQ(::statfs(held.Seen(folder_).c_str(), &freed), 0);
  EXPECT_EQ(freed.f_bfree, freed.f_blocks);
  EXPECT_TRUE(PlayUndo(Ballast(ballast, held.identity())));
}

TEST_P(UndoInHolder, LinkInsideThePrivateFilesystemDoesNotLeadOut) {
  HeldFilesystem held(folder_, 1 << 20, GetParam());
  ASSERT_TRUE(held.ok());
  fs::create_directory_symlink("/tmp", held.Seen(folder_ / "out"));
  EXPECT_EQ(PlayUndo(Ballast(folder_ / "out" / ".shakedown-ballast", held.identity())).error().code,
            ELOOP);
}

TEST_P(UndoInHolder, HolderThatIsGoneTookItsFilesystemWithIt) {
  HeldFilesystem held(folder_, 1 << 20, GetParam());
  ASSERT_TRUE(held.ok());
  held.End();
  // The same path outside must not be touched in its place.
  Write(folder_ / ".shakedown-ballast", "precious");
  EXPECT_TRUE(PlayUndo(Ballast(folder_ / ".shakedown-ballast", held.identity())));
  EXPECT_EQ(*ReadFile(folder_ / ".shakedown-ballast"), "precious");
}

TEST_P(UndoInHolder, LaterProcessWithTheHoldersPidIsNotTheHolder) {
  HeldFilesystem held(folder_, 1 << 20, GetParam());
  ASSERT_TRUE(held.ok());
  const fs::path ballast = folder_ / ".shakedown-ballast";
  Write(held.Seen(ballast), "of the later process");
  ProcessIdentity earlier = held.identity();
  earlier.start_time -= 1;
  EXPECT_TRUE(PlayUndo(Ballast(ballast, earlier)));
  EXPECT_TRUE(fs::exists(held.Seen(ballast)));
}

INSTANTIATE_TEST_SUITE_P(As, UndoInHolder, ::testing::Values(0, 65534),
                         [](const auto& as) { return as.param == 0 ? "Oneself" : "Nobody"; });

// --- remove_tree

TEST_F(Undo, TreeIsRemovedWithAllKindsOfContentsAndRemovingItAgainIsNoError) {
  const fs::path tree = folder_ / "shakedown-run";
  fs::create_directories(tree / "a" / "b" / "c");
  Write(tree / "a" / "file", "text");
  Write(tree / "a" / "b" / ".hidden", "text");
  ASSERT_EQ(::mkfifo((tree / "fifo").c_str(), 0600), 0);
  fs::create_symlink("/nonexistent", tree / "dangling");
  ASSERT_TRUE(PlayUndo(Tree(tree)));
  EXPECT_FALSE(fs::exists(tree));
  EXPECT_TRUE(PlayUndo(Tree(tree)));
}

TEST_F(Undo, LinksInATreeAreRemovedAndWhatTheyLeadToStays) {
  const fs::path tree = folder_ / "shakedown-run";
  fs::create_directories(tree);
  fs::create_directories(folder_ / "precious");
  Write(folder_ / "precious" / "file", "precious");
  fs::create_directory_symlink(folder_ / "precious", tree / "link");
  fs::create_hard_link(folder_ / "precious" / "file", tree / "second-name");
  ASSERT_TRUE(PlayUndo(Tree(tree)));
  EXPECT_EQ(*ReadFile(folder_ / "precious" / "file"), "precious");
}

TEST_F(Undo, LinkInThePlaceOfTheTreeOrOnTheWayIsRefused) {
  fs::create_directories(folder_ / "precious" / "shakedown-run");
  fs::create_directory_symlink(folder_ / "precious", folder_ / "shakedown-run");
  EXPECT_FALSE(PlayUndo(Tree(folder_ / "shakedown-run")));
  EXPECT_EQ(PlayUndo(Tree(folder_ / "shakedown-run" / "shakedown-run")).error().code, ELOOP);
  EXPECT_TRUE(fs::exists(folder_ / "precious" / "shakedown-run"));
}

TEST_F(Undo, TreeWithAWrongNameIsRefusedAndStays) {
  for (const char* name : {"run", ".shakedown-run", "myshakedown-run"}) {
    fs::create_directories(folder_ / name);
    EXPECT_EQ(PlayUndo(Tree(folder_ / name)).error().code, EINVAL) << name;
    EXPECT_TRUE(fs::exists(folder_ / name));
  }
  Write(folder_ / "shakedown-file", "precious");
  EXPECT_EQ(PlayUndo(Tree(folder_ / "shakedown-file")).error().code, ENOTDIR);
}

TEST_F(Undo, TreeNestedDeeperThanOursIsRefused) {
  fs::path deep = folder_ / "shakedown-run";
  for (int i = 0; i < 80; ++i) deep /= "d";
  fs::create_directories(deep);
  EXPECT_EQ(PlayUndo(Tree(folder_ / "shakedown-run")).error().code, ELOOP);
  EXPECT_TRUE(fs::exists(deep));
}

TEST_F(Undo, MountBelowATreeStopsItsRemovalAndKeepsItsContents) {
  const fs::path tree = folder_ / "shakedown-run";
  fs::create_directories(tree / "mounted");
  fs::create_directories(folder_ / "precious");
  Write(folder_ / "precious" / "file", "precious");
  // In a child with mounts of its own: a bind mount on the same filesystem, same device number.
  const pid_t child = ::fork();
  if (child == 0) {
    if (!EnterPrivateMounts()) ::_exit(77);
    if (::mount((folder_ / "precious").c_str(), (tree / "mounted").c_str(), nullptr, MS_BIND,
                nullptr) != 0) {
      ::_exit(2);
    }
    const Status status = PlayUndo(Tree(tree));
    ::_exit(!status && status.error().code == EXDEV ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*ReadFile(folder_ / "precious" / "file"), "precious");
}

TEST_F(Undo, TreeThatCannotBeRemovedInTimeSaysWhatIsLeft) {
  const fs::path tree = folder_ / "shakedown-run";
  fs::create_directories(tree / "a");
  UndoStep step = Tree(tree);
  step.deadline = Milliseconds(-1);
  const Status status = PlayUndo(step);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ETIMEDOUT);
  EXPECT_THAT(status.error().message, HasSubstr(tree.native()));
}

// --- end_process

SpawnedProcess StartSleeper() {
  SpawnOptions options;
  options.argv = {"sleep", "1000"};
  Result<SpawnedProcess> process = Spawn(options);
  EXPECT_TRUE(process) << process.error().message;
  return *std::move(process);
}

UndoStep End(const ProcessIdentity& process) { return {UndoVerb::kEndProcess, "", process}; }

TEST_F(Undo, ProcessIsEndedAndEndingItAgainIsNoError) {
  const SpawnedProcess sleeper = StartSleeper();
  ASSERT_TRUE(PlayUndo(End(sleeper.identity)));
  EXPECT_TRUE(PlayUndo(End(sleeper.identity))) << "ended, not reaped";
  EXPECT_EQ(*Wait(sleeper.pidfd.get()), WaitStatus::Signaled(SIGKILL));
  EXPECT_TRUE(PlayUndo(End(sleeper.identity))) << "reaped";
}

TEST_F(Undo, LaterProcessWithTheSamePidIsSpared) {
  const SpawnedProcess sleeper = StartSleeper();
  ProcessIdentity earlier = sleeper.identity;
  earlier.start_time -= 1;
  EXPECT_TRUE(PlayUndo(End(earlier)));
  EXPECT_FALSE(TryWait(sleeper.pidfd.get())->has_value());
  ASSERT_TRUE(SignalPidfd(sleeper.pidfd.get(), SIGKILL));
  ASSERT_TRUE(Wait(sleeper.pidfd.get()));
}

TEST_F(Undo, StoppedProcessIsEnded) {
  const SpawnedProcess sleeper = StartSleeper();
  ASSERT_TRUE(SignalPidfd(sleeper.pidfd.get(), SIGSTOP));
  ASSERT_TRUE(PlayUndo(End(sleeper.identity)));
  EXPECT_EQ(*Wait(sleeper.pidfd.get()), WaitStatus::Signaled(SIGKILL));
}

TEST_F(Undo, ProcessThatMayNotBeEndedIsAnError) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
  const SpawnedProcess sleeper = StartSleeper();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(2);
    const Status status = PlayUndo(End(sleeper.identity));
    ::_exit(!status && status.error().code == EPERM ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(PlayUndo(End(sleeper.identity)));
  ASSERT_TRUE(Wait(sleeper.pidfd.get()));
}

// --- Records and journals

TEST_F(Undo, StepsSurviveTheWayThroughTheJournal) {
  const ProcessIdentity self = *IdentityOf(::getpid());
  for (const UndoStep& step : {Ballast("/a/.shakedown-b"), Ballast("/a/.shakedown-b", self),
                               Tree("/a/shakedown-t"), End(self)}) {
    const Result<UndoStep> back = UndoStepFromJson(ToJson(step));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->verb, step.verb);
    EXPECT_EQ(back->path, step.path);
    EXPECT_EQ(back->process, step.process);
    EXPECT_EQ(back->deadline, step.deadline);
  }
}

TEST_F(Undo, RecordsThatAreNoStepsAreRefused) {
  for (const char* text :
       {"null", "{}", R"({"verb":"format_disk","path":"/","deadline_ms":1})",
        R"({"verb":"remove_tree","deadline_ms":1})", R"({"verb":"end_process","deadline_ms":1})",
        R"({"verb":"remove_tree","path":"/a","deadline_ms":0})",
        R"({"verb":"remove_tree","path":"/a"})",
        R"({"verb":"remove_ballast","path":"/a","process":{"pid":0},"deadline_ms":1})"}) {
    EXPECT_FALSE(UndoStepFromJson(*ParseJson(text))) << text;
  }
}

class UndoJournal : public Undo {
 protected:
  RunDir run() const { return RunDir(folder_); }

  void WriteJournal(const std::vector<UndoStep>& steps) {
    Result<JournalWriter> writer = JournalWriter::Open(run().journal());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->Header(ToJson(*IdentityOf(::getpid())), Json(), folder_));
    for (const UndoStep& step : steps) ASSERT_TRUE(writer->Append(step, 1));
  }
  Journal Now() { return ParseJournal(*ReadFile(run().journal()), *ReadFile(run().undone())); }
};

TEST_F(UndoJournal, IsPlayedBackwardsAndOnlyOnce) {
  fs::create_directories(folder_ / "shakedown-a");
  fs::create_directories(folder_ / "shakedown-b");
  WriteJournal({Tree(folder_ / "shakedown-a"), Tree(folder_ / "shakedown-b")});
  const Result<PlayedJournal> played = PlayJournal(run(), "clean");
  ASSERT_TRUE(played) << played.error().message;
  EXPECT_EQ(played->undone, 2);
  EXPECT_TRUE(played->clean());
  EXPECT_FALSE(fs::exists(folder_ / "shakedown-a"));
  EXPECT_FALSE(fs::exists(folder_ / "shakedown-b"));
  const std::string text = *ReadFile(run().undone());
  const std::vector<std::string_view> lines = SplitLines(text).complete;
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(IntField(*DecodeRecord(lines[0]), "seq"), 2);
  EXPECT_EQ(IntField(*DecodeRecord(lines[1]), "seq"), 1);
  EXPECT_EQ(PlayJournal(run(), "clean")->undone, 0);
}

TEST_F(UndoJournal, OneStepThatFailsDoesNotStopTheOthersAndIsTriedAgain) {
  fs::create_directories(folder_ / "shakedown-a");
  Write(folder_ / "shakedown-b", "not a directory");
  WriteJournal({Tree(folder_ / "shakedown-a"), Tree(folder_ / "shakedown-b")});
  const Result<PlayedJournal> played = PlayJournal(run(), "clean");
  ASSERT_TRUE(played) << played.error().message;
  EXPECT_EQ(played->undone, 1);
  ASSERT_THAT(played->remains, SizeIs(1));
  EXPECT_THAT(played->remains[0], HasSubstr("shakedown-b"));
  EXPECT_FALSE(fs::exists(folder_ / "shakedown-a"));
  EXPECT_THAT(Now().pending, SizeIs(1));
  fs::remove(folder_ / "shakedown-b");
  EXPECT_EQ(PlayJournal(run(), "clean")->undone, 1);
  EXPECT_THAT(Now().pending, SizeIs(0));
}

TEST_F(UndoJournal, DamagedRecordIsReportedAndTheOthersArePlayed) {
  fs::create_directories(folder_ / "shakedown-a");
  fs::create_directories(folder_ / "shakedown-b");
  WriteJournal({Tree(folder_ / "shakedown-a"), Tree(folder_ / "shakedown-b")});
  std::string text = *ReadFile(run().journal());
  text[text.find("shakedown-a")] ^= 1;
  ASSERT_TRUE(PublishFile(run().journal(), text));
  const Result<PlayedJournal> played = PlayJournal(run(), "clean");
  ASSERT_TRUE(played) << played.error().message;
  EXPECT_EQ(played->undone, 1);
  ASSERT_THAT(played->remains, SizeIs(1));
  EXPECT_THAT(played->remains[0], HasSubstr("line 2"));
  EXPECT_FALSE(fs::exists(folder_ / "shakedown-b"));
  EXPECT_TRUE(fs::exists(folder_ / "shakedown-a"));
}

TEST_F(UndoJournal, HalfRecordOfAKilledReaperDoesNotSpoilTheNextOne) {
  fs::create_directories(folder_ / "shakedown-a");
  WriteJournal({Tree(folder_ / "shakedown-a")});
  Write(run().undone(), R"({"seq":1,"und)");
  ASSERT_TRUE(PlayJournal(run(), "clean")->clean());
  EXPECT_THAT(Now().pending, SizeIs(0));
}

TEST_F(UndoJournal, SecondPlayerAtTheSameTimeIsRefused) {
  WriteJournal({});
  const UniqueFd other(::open(run().journal().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_EQ(PlayJournal(run(), "clean").error().code, EWOULDBLOCK);
}

TEST_F(UndoJournal, RunWithoutAJournalHasNothingToUndo) {
  const Result<PlayedJournal> played = PlayJournal(run(), "clean");
  ASSERT_TRUE(played);
  EXPECT_TRUE(played->clean());
  EXPECT_FALSE(fs::exists(run().undone()));
}

}  // namespace
}  // namespace shakedown
