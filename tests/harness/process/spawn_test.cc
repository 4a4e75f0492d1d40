#include "harness/process/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace shakedown {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

struct Outcome {
  std::string output;
  WaitStatus status = WaitStatus::Exited(-1);
};

// Runs it to its end with stdout in a pipe.
Result<Outcome> RunToEnd(SpawnOptions options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("create", "pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  options.descriptors.emplace_back(write_end.get(), 1);
  const Result<SpawnedProcess> process = Spawn(options);
  write_end.Reset();
  if (!process) return tl::unexpected(process.error());
  Outcome outcome;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(read_end.get(), buffer, sizeof buffer)) > 0;) {
    outcome.output.append(buffer, static_cast<size_t>(n));
  }
  const Result<WaitStatus> status = Wait(process->pidfd.get());
  if (!status) return tl::unexpected(status.error());
  outcome.status = *status;
  return outcome;
}

SpawnOptions Shell(const std::string& script) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin"};
  return options;
}

class SpawnInFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/spawn_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST(Spawn, GivesArgumentsAndExactlyTheEnvironmentNamed) {
  SpawnOptions options;
  options.argv = {"/usr/bin/env"};
  options.environment = {"ONE=1", "TWO=a b"};
  const Result<Outcome> outcome = RunToEnd(options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->output, "ONE=1\nTWO=a b\n");
  EXPECT_TRUE(outcome->status.ok());
}

TEST(Spawn, ReportsHowItEnded) {
  EXPECT_EQ(RunToEnd(Shell("exit 9"))->status, WaitStatus::Exited(9));
  EXPECT_EQ(RunToEnd(Shell("kill -KILL $$"))->status, WaitStatus::Signaled(SIGKILL));
}

TEST(Spawn, MissingProgramIsNamed) {
  SpawnOptions options;
  options.argv = {"/nonexistent/trainer"};
  const Result<SpawnedProcess> process = Spawn(options);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, ENOENT);
  EXPECT_THAT(process.error().message, HasSubstr("cannot start '/nonexistent/trainer'"));
  EXPECT_THAT(process.error().message, HasSubstr("ENOENT"));
}

TEST(Spawn, ProgramMissingFromPathIsNamedWithThePathSearched) {
  SpawnOptions options;
  options.argv = {"no-such-program-anywhere"};
  options.environment = {"PATH=/usr/bin:/bin"};
  const Result<SpawnedProcess> process = Spawn(options);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error().message, HasSubstr("no-such-program-anywhere"));
  EXPECT_THAT(process.error().message, HasSubstr("not in PATH (/usr/bin:/bin)"));
}

TEST_F(SpawnInFolder, FileThatMayNotBeExecutedIsRefusedWithItsErrno) {
  const std::filesystem::path file = folder_ / "data";
  std::ofstream(file) << "no program\n";
  SpawnOptions options;
  options.argv = {file.native()};
  EXPECT_EQ(Spawn(options).error().code, EACCES);
  // Found in PATH, it is what is reported when no later folder has the program.
  options.argv = {"data"};
  options.environment = {"PATH=" + folder_.native() + ":/usr/bin"};
  EXPECT_EQ(Spawn(options).error().code, EACCES);
  ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  EXPECT_EQ(Spawn(options).error().code, ENOEXEC);
}

TEST(Spawn, EmptyCommandIsRefused) { EXPECT_EQ(Spawn({}).error().code, EINVAL); }

TEST(Spawn, DirectoryThatIsMissingIsNamed) {
  SpawnOptions options = Shell("true");
  options.directory = "/nonexistent/folder";
  const Result<SpawnedProcess> process = Spawn(options);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, ENOENT);
  EXPECT_THAT(process.error().message, HasSubstr("changing to directory '/nonexistent/folder'"));
}

TEST_F(SpawnInFolder, StartsInItsDirectoryAndFindsARelativeProgramThere) {
  std::ofstream(folder_ / "hello") << "#!/bin/sh\npwd\n";
  ASSERT_EQ(::chmod((folder_ / "hello").c_str(), 0755), 0);
  SpawnOptions options;
  options.argv = {"./hello"};
  options.directory = folder_;
  const Result<Outcome> outcome = RunToEnd(options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->output, folder_.native() + "\n");
}

TEST(Spawn, FailedStartLeavesNoChildAndNoDescriptor) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto before = descriptors();
  SpawnOptions options;
  options.argv = {"/nonexistent/trainer"};
  ASSERT_FALSE(Spawn(options));
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(descriptors(), before);
}

TEST(Spawn, NamespaceDescriptorThatIsNoneIsRefusedWithTheStage) {
  SpawnOptions options = Shell("true");
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  options.user_namespace_fd = null.get();
  Result<SpawnedProcess> process = Spawn(options);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error().message, HasSubstr("entering the user namespace"));
  options.user_namespace_fd.reset();
  options.mount_namespace_fd = null.get();
  process = Spawn(options);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error().message, HasSubstr("entering the mount namespace"));
}

TEST(Spawn, BlockedAndIgnoredSignalsAndHandlersDoNotLeak) {
  sigset_t block;
  sigset_t before;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGTERM);
  ::sigaddset(&block, SIGCHLD);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &block, &before), 0);
  const auto old_int = ::signal(SIGINT, SIG_IGN);
  const auto old_pipe = ::signal(SIGPIPE, SIG_IGN);
  SpawnOptions options;
  options.argv = {"/bin/cat", "/proc/self/status"};
  const Result<Outcome> outcome = RunToEnd(options);
  ::signal(SIGINT, old_int);
  ::signal(SIGPIPE, old_pipe);
  sigset_t after;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, &after), 0);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_THAT(outcome->output, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(outcome->output, HasSubstr("SigIgn:\t0000000000000000"));
  EXPECT_EQ(::sigismember(&after, SIGTERM), 1) << "the caller's own mask must be as it was";
  EXPECT_EQ(::sigismember(&after, SIGUSR1), 0);
}

TEST(Spawn, OnlyNamedDescriptorsAreOpenAndTheRestOfStandardOnesAreNull) {
  // Inheritable, so that only Spawn keeps it out of the child.
  const UniqueFd inheritable(::open("/proc/self/status", O_RDONLY));
  // The shell itself has a descriptor open while it expands the star; it is gone when looked at.
  const UniqueFd named(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  SpawnOptions options =
      Shell("for f in /proc/$$/fd/*; do [ -L $f ] && printf '%s ' ${f##*/} && readlink $f; done");
  options.descriptors = {{named.get(), 77}};
  const Result<Outcome> outcome = RunToEnd(options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_THAT(outcome->output,
              MatchesRegex("0 /dev/null\n1 pipe:[^\n]*\n2 /dev/null\n77 /proc/[0-9]+/stat\n"));
}

TEST_F(SpawnInFolder, DescriptorsMaySwapNumbers) {
  std::ofstream(folder_ / "a") << "A";
  std::ofstream(folder_ / "b") << "B";
  const UniqueFd a(::open((folder_ / "a").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd b(::open((folder_ / "b").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string a_number = std::to_string(a.get());
  const std::string b_number = std::to_string(b.get());
  SpawnOptions options = Shell("cat <&" + a_number + "; cat <&" + b_number);
  options.descriptors = {{a.get(), b.get()}, {b.get(), a.get()}};
  const Result<Outcome> outcome = RunToEnd(options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->output, "BA");
}

TEST(Spawn, NewSessionIsLedByTheChild) {
  SpawnOptions options = Shell("cut -d' ' -f1,5,6 /proc/$$/stat");
  options.new_session = true;
  const Result<Outcome> outcome = RunToEnd(options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_THAT(outcome->output, MatchesRegex("([0-9]+) [0-9]+ [0-9]+\n"));
  int pid = 0;
  int group = 0;
  int session = 0;
  ASSERT_EQ(std::sscanf(outcome->output.c_str(), "%d %d %d", &pid, &group, &session), 3);
  EXPECT_EQ(pid, group);
  EXPECT_EQ(pid, session);
}

TEST(Spawn, IdentityIsTheChilds) {
  const Result<SpawnedProcess> process = Spawn(Shell("kill -STOP $$"));
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(*IdentityOf(process->pid), process->identity);
  EXPECT_TRUE(OpenPidfd(process->identity));
  ASSERT_TRUE(SignalPidfd(process->pidfd.get(), SIGKILL));
  EXPECT_EQ(*Wait(process->pidfd.get()), WaitStatus::Signaled(SIGKILL));
}

// Threads that allocate without pause hold malloc's locks at some of the clones.
TEST(Spawn, WorksWhileOtherThreadsAllocate) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) std::vector<std::string> garbage(100, std::string(200, 'x'));
    });
  }
  for (int i = 0; i < 100; ++i) {
    const Result<Outcome> outcome = RunToEnd(Shell("echo ok"));
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(outcome->output, "ok\n");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Waiting, DoesNotBlockAndReapsOnce) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  SpawnOptions options = Shell("read line; exit 4");
  options.descriptors = {{read_end.get(), 0}};
  const Result<SpawnedProcess> process = Spawn(options);
  ASSERT_TRUE(process) << process.error().message;
  Result<std::optional<WaitStatus>> status = TryWait(process->pidfd.get());
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->has_value());
  write_end.Reset();
  pollfd ready{process->pidfd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 30'000), 1);
  status = TryWait(process->pidfd.get());
  ASSERT_TRUE(status);
  EXPECT_EQ(*status, WaitStatus::Exited(4));
  EXPECT_EQ(TryWait(process->pidfd.get()).error().code, ECHILD);
}

TEST(ExitOfAPidfd, IsKnownAfterReapingToAnybodyWhoHoldsIt) {
  for (const auto& [script, expected] :
       {std::pair("exit 9", WaitStatus::Exited(9)),
        std::pair("kill -KILL $$", WaitStatus::Signaled(SIGKILL))}) {
    const Result<SpawnedProcess> process = Spawn(Shell(script));
    ASSERT_TRUE(process) << process.error().message;
    ASSERT_TRUE(Wait(process->pidfd.get()));
    const std::optional<WaitStatus> status = ExitFromPidfd(process->pidfd.get());
    if (!status) GTEST_SKIP() << "this kernel has no PIDFD_INFO_EXIT (Linux 6.15)";
    EXPECT_EQ(*status, expected);
  }
}

TEST(ExitOfAPidfd, IsUnknownWhileTheProcessRunsAndForOtherFiles) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  SpawnOptions options = Shell("read line");
  options.descriptors = {{read_end.get(), 0}};
  const Result<SpawnedProcess> process = Spawn(options);
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(ExitFromPidfd(process->pidfd.get()), std::nullopt);
  EXPECT_EQ(ExitFromPidfd(read_end.get()), std::nullopt);
  write_end.Reset();
  EXPECT_TRUE(Wait(process->pidfd.get()));
}

}  // namespace
}  // namespace shakedown
