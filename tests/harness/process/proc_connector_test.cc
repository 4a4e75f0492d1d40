#include "harness/process/proc_connector.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "harness/process/spawn.h"

namespace shakedown {
namespace {

std::optional<WaitStatus> AwaitExit(ProcConnector& connector, pid_t pid) {
  pollfd ready{connector.fd(), POLLIN, 0};
  while (::poll(&ready, 1, 10'000) == 1) {
    for (const ProcExit& exit : connector.Read()) {
      if (exit.pid == pid) return exit.status;
    }
  }
  return std::nullopt;
}

TEST(ProcessConnector, TellsExitsOrSaysWhyItCannot) {
  Result<ProcConnector> connector = ProcConnector::Open();
  if (!connector) {
    EXPECT_FALSE(connector.error().message.empty());
    EXPECT_NE(connector.error().code, 0);
    GTEST_SKIP() << connector.error().message;
  }
  for (const auto& [script, expected] :
       {std::pair("exit 9", WaitStatus::Exited(9)),
        std::pair("kill -KILL $$", WaitStatus::Signaled(SIGKILL))}) {
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", script};
    const Result<SpawnedProcess> process = Spawn(options);
    ASSERT_TRUE(process) << process.error().message;
    // Also when somebody else has reaped it.
    ASSERT_TRUE(Wait(process->pidfd.get()));
    EXPECT_EQ(AwaitExit(*connector, process->pid), expected);
  }
}

TEST(ProcessConnector, TwoListenersOfOneMachineDoNotDisturbEachOther) {
  Result<ProcConnector> first = ProcConnector::Open();
  if (!first) GTEST_SKIP() << first.error().message;
  Result<ProcConnector> second = ProcConnector::Open();
  ASSERT_TRUE(second) << second.error().message;
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "exit 3"};
  const Result<SpawnedProcess> process = Spawn(options);
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(AwaitExit(*first, process->pid), WaitStatus::Exited(3));
  EXPECT_EQ(AwaitExit(*second, process->pid), WaitStatus::Exited(3));
  ASSERT_TRUE(Wait(process->pidfd.get()));
}

TEST(ProcessConnector, WhereItMayNotBeListenedToIsAnErrorAndNoHang) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Outside the initial user namespace the kernel tells nothing.
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(2);
    const Result<ProcConnector> connector = ProcConnector::Open();
    ::_exit(connector || connector.error().message.empty() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no user namespaces";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace shakedown
