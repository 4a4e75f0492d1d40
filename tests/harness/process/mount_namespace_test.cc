#include "harness/process/mount_namespace.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

namespace shakedown {
namespace {

constexpr uid_t kNobody = 65534;

bool BecomeNobody() {
  // A change of user makes /proc/self root's; an exec, which we leave out, would give it back.
  return ::setgroups(0, nullptr) == 0 && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0 &&
         ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

// Runs `body` in a child, whose namespaces and ids are its own. The body returns what went wrong.
std::string InChild(bool as_nobody, const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string problem;
    if (as_nobody && !BecomeNobody()) {
      problem = "cannot become nobody";
    } else {
      problem = body();
    }
    ::_exit(::write(ends[1], problem.data(), problem.size()) == static_cast<ssize_t>(problem.size())
                ? 0
                : 1);
  }
  ::close(ends[1]);
  std::string problem;
  char buffer[1024];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    problem.append(buffer, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? problem : problem + " (the child died)";
}

class PrivateMounts : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && ::geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
    char name[] = "/tmp/mount_namespace_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_EQ(::chmod(name, 0755), 0);
    mountpoint_ = folder_ + "/mnt";
    ASSERT_EQ(::mkdir(mountpoint_.c_str(), 0755), 0);
  }
  void TearDown() override {
    ::rmdir(mountpoint_.c_str());
    ::rmdir(folder_.c_str());
  }
  std::string folder_;
  std::string mountpoint_;
};

TEST_P(PrivateMounts, TmpfsHasItsSizeAndNobodyElseSeesIt) {
  constexpr int64_t kBytes = 1 << 20;
  struct statfs before {};
  ASSERT_EQ(::statfs(mountpoint_.c_str(), &before), 0);
  const std::string problem = InChild(GetParam(), [&]() -> std::string {
    const Result<bool> user_namespace = EnterPrivateMounts();
    if (!user_namespace) return user_namespace.error().message;
    if (*user_namespace != (::geteuid() != 0)) return "a user namespace only when not root";
    if (GetParam() && ::geteuid() != kNobody) return "the uid must stay the user's own";
    const Result<UniqueFd> root = MountPrivateTmpfs(mountpoint_, kBytes);
    if (!root) return root.error().message;
    struct statfs fs {};
    if (::fstatfs(root->get(), &fs) != 0) return "no statfs";
    if (static_cast<int64_t>(fs.f_blocks) * fs.f_bsize != kBytes) return "not the size asked for";
    if (::openat(root->get(), "inside", O_CREAT | O_WRONLY, 0600) < 0) return "cannot write";
    if (::access((mountpoint_ + "/inside").c_str(), F_OK) != 0) return "not mounted at its place";
    return "";
  });
  EXPECT_EQ(problem, "");
  EXPECT_NE(::access((mountpoint_ + "/inside").c_str(), F_OK), 0) << "it must not be seen outside";
  struct statfs after {};
  ASSERT_EQ(::statfs(mountpoint_.c_str(), &after), 0);
  EXPECT_EQ(after.f_type, before.f_type);
}

TEST_P(PrivateMounts, MissingMountpointIsNamed) {
  const std::string problem = InChild(GetParam(), [&]() -> std::string {
    if (!EnterPrivateMounts()) return "cannot enter";
    const Result<UniqueFd> root = MountPrivateTmpfs(folder_ + "/missing", 1 << 20);
    return root ? "mounted" : root.error().message;
  });
  EXPECT_NE(problem.find("cannot mount a tmpfs of 1048576 bytes at '" + folder_ + "/missing'"),
            std::string::npos)
      << problem;
}

TEST_P(PrivateMounts, ProbeSaysWhatTheCallsDo) {
  const std::string problem = InChild(GetParam(), [&]() -> std::string {
    const PrivateMountsProbe probe = ProbePrivateMounts();
    const Result<bool> user_namespace = EnterPrivateMounts();
    if (probe.available != user_namespace.has_value())
      return "the probe is wrong: " + probe.why_not;
    if (!probe.available && probe.why_not.empty()) return "no reason given";
    if (user_namespace && probe.user_namespace != *user_namespace) return "wrong about the user";
    return "";
  });
  EXPECT_EQ(problem, "");
}

TEST_P(PrivateMounts, ProbeLeavesTheCallersNamespacesAlone) {
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat("/proc/self/ns/mnt", &before), 0);
  (void)ProbePrivateMounts();
  ASSERT_EQ(::stat("/proc/self/ns/mnt", &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

INSTANTIATE_TEST_SUITE_P(As, PrivateMounts, ::testing::Values(false, true),
                         [](const auto& as) { return as.param ? "Nobody" : "Oneself"; });

}  // namespace
}  // namespace shakedown
