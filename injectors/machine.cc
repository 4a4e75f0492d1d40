// What this machine and this user can do, found out by doing it: a kernel may have user namespaces
// and a sysctl, a security module or a container that forbids them, and only a try tells.
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "injectors/fault.h"

namespace shakedown {
namespace {

enum class Way { kDirect, kUserNamespace };

// What the child was doing when it failed, and the errno; stage 0: it succeeded.
struct Outcome {
  int stage = 0;
  int error = 0;
};
constexpr const char* kStages[] = {"",
                                   "make a namespace (unshare)",
                                   "map its user (/proc/self/uid_map)",
                                   "make its mounts private (mount)",
                                   "mount a tmpfs",
                                   "write a file into the tmpfs",
                                   "say what it found"};
constexpr int kStageLost = 6;

bool WriteText(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written =
      ::write(fd, text, std::strlen(text)) == static_cast<ssize_t>(std::strlen(text));
  const int error = errno;
  ::close(fd);
  errno = error;
  return written;
}

// In the child of a process that may have threads: system calls only. The maps were formatted
// before the fork. The tmpfs goes over "/", a directory that surely exists, where only this child
// sees it.
Outcome TryInChild(Way way, const char* uid_map, const char* gid_map) {
  const int flags = CLONE_NEWNS | (way == Way::kUserNamespace ? CLONE_NEWUSER : 0);
  if (::unshare(flags) != 0) return {1, errno};
  // A group map may only be written once setgroups is given up (user_namespaces(7)).
  if (way == Way::kUserNamespace &&
      (!WriteText("/proc/self/setgroups", "deny") || !WriteText("/proc/self/uid_map", uid_map) ||
       !WriteText("/proc/self/gid_map", gid_map))) {
    return {2, errno};
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return {3, errno};
  if (::mount("shakedown", "/", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") != 0) return {4, errno};
  // "/" of this process is still what lies below; "/.." is what was mounted over it.
  struct statfs fs {};
  if (::statfs("/..", &fs) != 0) return {5, errno};
  if (fs.f_type != TMPFS_MAGIC) return {5, EXDEV};
  const int fd = ::open("/..", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 || ::write(fd, "x", 1) != 1) return {5, errno};
  return {};
}

Outcome Try(Way way) {
  char uid_map[64];
  char gid_map[64];
  std::snprintf(uid_map, sizeof uid_map, "0 %u 1", ::geteuid());
  std::snprintf(gid_map, sizeof gid_map, "0 %u 1", ::getegid());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {kStageLost, errno};
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return {kStageLost, errno};
  if (child == 0) {
    const Outcome outcome = TryInChild(way, uid_map, gid_map);
    const bool told = ::write(writer.get(), &outcome, sizeof outcome) == sizeof outcome;
    ::_exit(told ? 0 : 1);
  }
  writer.Reset();
  Outcome outcome{kStageLost, EPIPE};
  ssize_t n = 0;
  do {
    n = ::read(reader.get(), &outcome, sizeof outcome);
  } while (n < 0 && errno == EINTR);
  // Where SIGCHLD is ignored the kernel has reaped it already: ECHILD, which is fine.
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return n == sizeof outcome ? outcome : Outcome{kStageLost, EPIPE};
}

std::string Describe(const char* way, const Outcome& outcome) {
  return std::string(way) + ": cannot " + kStages[outcome.stage] + ": " +
         DescribeErrno(outcome.error);
}

Machine Measure() {
  Machine machine;
  machine.root = ::geteuid() == 0;
  const Outcome through_user = Try(Way::kUserNamespace);
  const Outcome direct = machine.root ? Try(Way::kDirect) : Outcome{1, EPERM};
  machine.user_namespace = through_user.stage == 0;
  machine.mount_namespace = direct.stage == 0 || machine.user_namespace;
  if (machine.mount_namespace) return machine;
  if (machine.root) machine.why_no_mount_namespace = Describe("as root", direct) + "; ";
  machine.why_no_mount_namespace +=
      Describe("through a user namespace", through_user) +
      "; run as root, or allow user namespaces (sysctl user.max_user_namespaces, and "
      "kernel.unprivileged_userns_clone where there is one)";
  return machine;
}

}  // namespace

Machine DetectMachine() {
  static const Machine kMachine = Measure();
  return kMachine;
}

}  // namespace shakedown
