#include "harness/process/identity.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "harness/process/spawn.h"

namespace shakedown {
namespace {

SpawnedProcess StartSleeper() {
  SpawnOptions options;
  options.argv = {"sleep", "1000"};
  Result<SpawnedProcess> process = Spawn(options);
  EXPECT_TRUE(process) << process.error().message;
  return *std::move(process);
}

void End(const SpawnedProcess& process) {
  ASSERT_TRUE(SignalPidfd(process.pidfd.get(), SIGKILL));
  const Result<WaitStatus> status = Wait(process.pidfd.get());
  ASSERT_TRUE(status);
  EXPECT_EQ(*status, WaitStatus::Signaled(SIGKILL));
}

TEST(Identity, IsTheSameWheneverItIsAsked) {
  const Result<ProcessIdentity> first = IdentityOf(::getpid());
  const Result<ProcessIdentity> second = IdentityOf(::getpid());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_GT(first->start_time, 0u);
  EXPECT_EQ(first->boot_id.size(), 36u);
}

TEST(Identity, NameWithParenthesesAndSpacesDoesNotShiftTheFields) {
  const Result<ProcessStat> before = ReadProcessStat(::getpid());
  char name[16] = {};
  ASSERT_EQ(::prctl(PR_GET_NAME, name), 0);
  ASSERT_EQ(::prctl(PR_SET_NAME, ") Z 1 (9 9 9"), 0);
  const Result<ProcessStat> after = ReadProcessStat(::getpid());
  ASSERT_EQ(::prctl(PR_SET_NAME, name), 0);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->name, ") Z 1 (9 9 9");
  EXPECT_EQ(after->start_time, before->start_time);
  EXPECT_EQ(after->parent, ::getppid());
  EXPECT_EQ(after->state, 'R');
}

TEST(Identity, PidfdOfALivingProcessIsGiven) {
  const SpawnedProcess sleeper = StartSleeper();
  EXPECT_TRUE(OpenPidfd(sleeper.identity));
  End(sleeper);
}

TEST(Identity, LaterProcessWithTheSamePidIsRefused) {
  const SpawnedProcess sleeper = StartSleeper();
  ProcessIdentity earlier = sleeper.identity;
  earlier.start_time -= 1;
  const Result<UniqueFd> pidfd = OpenPidfd(earlier);
  ASSERT_FALSE(pidfd);
  EXPECT_EQ(pidfd.error().code, ESRCH);
  End(sleeper);
}

TEST(Identity, ProcessOfAnotherBootIsRefused) {
  const SpawnedProcess sleeper = StartSleeper();
  ProcessIdentity elsewhere = sleeper.identity;
  elsewhere.boot_id = "00000000-0000-0000-0000-000000000000";
  const Result<UniqueFd> pidfd = OpenPidfd(elsewhere);
  ASSERT_FALSE(pidfd);
  EXPECT_EQ(pidfd.error().code, ESRCH);
  End(sleeper);
}

TEST(Identity, ReapedProcessIsGone) {
  const SpawnedProcess sleeper = StartSleeper();
  End(sleeper);
  const Result<UniqueFd> pidfd = OpenPidfd(sleeper.identity);
  ASSERT_FALSE(pidfd);
  EXPECT_EQ(pidfd.error().code, ESRCH);
  EXPECT_EQ(IdentityOf(sleeper.pid).error().code, ESRCH);
  EXPECT_EQ(SignalPidfd(sleeper.pidfd.get(), SIGKILL).error().code, ESRCH);
}

TEST(Identity, SurvivesTheWayThroughARecord) {
  const Result<ProcessIdentity> self = IdentityOf(::getpid());
  ASSERT_TRUE(self);
  const Result<ProcessIdentity> back = IdentityFromJson(ToJson(*self));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, *self);
}

TEST(Identity, RecordThatIsNoneIsRefused) {
  for (const char* text :
       {"null", "[]", "{}", R"({"pid":1,"start_time":2})",
        R"({"pid":0,"start_time":2,"boot_id":"b"})", R"({"pid":-1,"start_time":2,"boot_id":"b"})",
        R"({"pid":1,"start_time":-2,"boot_id":"b"})", R"({"pid":"1","start_time":2,"boot_id":"b"})",
        R"({"pid":4294967297,"start_time":2,"boot_id":"b"})"}) {
    EXPECT_FALSE(IdentityFromJson(*ParseJson(text))) << text;
  }
}

}  // namespace
}  // namespace shakedown
