#include "harness/process/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "harness/base/time.h"
#include "harness/process/identity.h"

namespace shakedown {
namespace {

using ::testing::HasSubstr;

HelperRequest Shell(const std::string& script) { return {.argv = {"sh", "-c", script}}; }

void ExpectNoChild() {
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Helper, OutputErrorsAndStatusAreTold) {
  const Result<HelperResult> result = RunHelper(Shell("echo out; echo err >&2; exit 9"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
  EXPECT_EQ(result->status, WaitStatus::Exited(9));
  ExpectNoChild();
}

TEST(Helper, DeathBySignalIsNoExitNine) {
  const Result<HelperResult> result = RunHelper(Shell("kill -KILL $$"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->status, WaitStatus::Signaled(SIGKILL));
}

TEST(Helper, MissingProgramIsNamed) {
  for (const char* program : {"no-such-helper-anywhere", "/nonexistent/helper"}) {
    const Result<HelperResult> result = RunHelper({.argv = {program}});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ENOENT);
    EXPECT_THAT(result.error().message, HasSubstr(program));
  }
  EXPECT_EQ(RunHelper({}).error().code, EINVAL);
  ExpectNoChild();
}

TEST(Helper, OutputIsKeptUpToItsLimitAndTheRestDoesNotBlock) {
  HelperRequest request = Shell("head -c 5000000 /dev/zero; echo end >&2");
  request.output_limit_bytes = 1000;
  const Result<HelperResult> result = RunHelper(request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->out, std::string(1000, '\0'));
  EXPECT_EQ(result->err, "end\n");
}

TEST(Helper, OneThatDoesNotEndIsKilledAtItsDeadline) {
  HelperRequest request = Shell("trap '' TERM; echo $$; exec sleep 1000");
  request.deadline = Milliseconds(100);
  const MonoTime begin = MonoNow();
  const Result<HelperResult> result = RunHelper(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ETIMEDOUT);
  EXPECT_LT(ToMs(MonoNow() - begin), 20'000);
  ExpectNoChild();
}

TEST(Helper, ChildOfTheHelperThatKeepsTheOutputOpenDoesNotBlockForEver) {
  HelperRequest request = Shell("sleep 1000 & echo $! >$OUT");
  request.deadline = Milliseconds(100);
  char file[] = "/tmp/child_test.XXXXXX";
  ASSERT_GE(::mkstemp(file), 0);
  request.environment = {std::string("OUT=") + file};
  const Result<HelperResult> result = RunHelper(request);
  EXPECT_FALSE(result);
  FILE* stream = std::fopen(file, "r");
  int pid = 0;
  ASSERT_EQ(std::fscanf(stream, "%d", &pid), 1);
  std::fclose(stream);
  ::unlink(file);
  const Result<UniqueFd> sleeper = OpenPidfd(*IdentityOf(pid));
  ASSERT_TRUE(sleeper);
  ASSERT_TRUE(SignalPidfd(sleeper->get(), SIGKILL));
}

TEST(Helper, EnvironmentIsAddedToOursAndReplacesIt) {
  ASSERT_EQ(::setenv("HELPER_TEST_A", "ours", 1), 0);
  ASSERT_EQ(::setenv("HELPER_TEST_B", "ours", 1), 0);
  HelperRequest request = Shell("env | grep '^HELPER_TEST' | sort");
  request.environment = {"HELPER_TEST_B=given"};
  const Result<HelperResult> result = RunHelper(request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->out, "HELPER_TEST_A=ours\nHELPER_TEST_B=given\n");
}

TEST(Helper, SignalMaskAndIgnoredSignalsDoNotLeak) {
  sigset_t block;
  sigset_t before;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &block, &before), 0);
  const auto old = ::signal(SIGUSR1, SIG_IGN);
  const Result<HelperResult> result = RunHelper({.argv = {"cat", "/proc/self/status"}});
  ::signal(SIGUSR1, old);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->out, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(result->out, HasSubstr("SigIgn:\t0000000000000000"));
}

TEST(Helper, ManyThreadsMayRunHelpersAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int k = 0; k < 10; ++k) {
        const Result<HelperResult> result = RunHelper(Shell("exit " + std::to_string(i)));
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(result->status, WaitStatus::Exited(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectNoChild();
}

}  // namespace
}  // namespace shakedown
