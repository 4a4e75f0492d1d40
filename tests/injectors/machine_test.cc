#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "injectors/fault.h"
#include "tests/support/private_tmpfs.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

// What was found out has to agree with doing it.
TEST(Machine, APrivateFilesystemCanBeMadeWhereItSaysSo) {
  const Machine machine = DetectMachine();
  EXPECT_EQ(machine.root, ::geteuid() == 0);
  const test_support::TempDir directory;
  const auto made = test_support::PrivateTmpfs::Make(directory.path(), 64 << 10);
  EXPECT_EQ(made.has_value(), machine.mount_namespace)
      << (made ? machine.why_no_mount_namespace : made.error().message);
}

TEST(Machine, SaysWhyThereIsNoMountNamespaceAndOnlyThen) {
  const Machine machine = DetectMachine();
  EXPECT_EQ(machine.why_no_mount_namespace.empty(), machine.mount_namespace);
  if (machine.user_namespace) {
    EXPECT_TRUE(machine.mount_namespace);
  }
}

// In a user namespace of its own, without any mapping, a process may do none of it. A death test,
// since the answer is kept for the life of a process.
TEST(MachineDeathTest, AUserWhoMayNotIsToldWhatToDo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        if (::unshare(CLONE_NEWUSER) != 0) ::_exit(3);
        const Machine machine = DetectMachine();
        ::write(STDERR_FILENO, machine.why_no_mount_namespace.data(),
                machine.why_no_mount_namespace.size());
        ::_exit(machine.mount_namespace ? 1 : 0);
      },
      ::testing::ExitedWithCode(0),
      "user namespace: cannot make a namespace.*run as root, or allow");
}

}  // namespace
}  // namespace shakedown
