#include "harness/process/mount_namespace.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/base/file.h"

namespace shakedown {
namespace {

Status WriteProcFile(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open", path);
  return WriteAll(fd.get(), text, path);
}

// The user is itself inside, and nobody else exists: a gid map is only granted to who gives up
// setgroups (user_namespaces(7)).
Status MapOwnIds(uid_t uid, gid_t gid) {
  const std::string user = std::to_string(uid);
  const std::string group = std::to_string(gid);
  SHAKEDOWN_TRY(WriteProcFile("/proc/self/setgroups", "deny"));
  SHAKEDOWN_TRY(WriteProcFile("/proc/self/uid_map", user + " " + user + " 1"));
  return WriteProcFile("/proc/self/gid_map", group + " " + group + " 1");
}

Result<UniqueFd> OpenNamespace(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open namespace", path);
  return fd;
}

Result<bool> SameNamespace(int fd, const char* own) {
  struct stat theirs {};
  struct stat ours {};
  if (::fstat(fd, &theirs) != 0) return FailErrno("look at", "a namespace");
  if (::stat(own, &ours) != 0) return FailErrno("look at", own);
  return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

// What the probing child says through its pipe.
struct ProbeAnswer {
  bool available;
  bool user_namespace;
  char why_not[256];
};

ProbeAnswer TryPrivateMounts() {
  ProbeAnswer answer{};
  const Result<bool> user_namespace = EnterPrivateMounts();
  // In the child's own namespace any directory will do, and this one is always there.
  const Result<UniqueFd> root = user_namespace
                                    ? MountPrivateTmpfs("/proc", int64_t{1} << 20)
                                    : Result<UniqueFd>(tl::unexpected(user_namespace.error()));
  answer.available = root.has_value();
  answer.user_namespace = user_namespace.value_or(false);
  if (!root) std::strncpy(answer.why_not, root.error().message.c_str(), sizeof answer.why_not - 1);
  return answer;
}

}  // namespace

Result<bool> EnterPrivateMounts() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  bool user_namespace = false;
  if (::unshare(CLONE_NEWNS) != 0) {
    if (errno != EPERM) return FailErrno("unshare", "the mount namespace");
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      const int code = errno;
      return Fail("cannot unshare user and mount namespaces: " + DescribeErrno(code) +
                      "; run as root or allow user namespaces (user.max_user_namespaces, "
                      "kernel.unprivileged_userns_clone)",
                  code);
    }
    SHAKEDOWN_TRY(MapOwnIds(uid, gid));
    user_namespace = true;
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return FailErrno("make private the mounts below", "/");
  }
  return user_namespace;
}

Result<UniqueFd> MountPrivateTmpfs(const std::string& mountpoint, int64_t bytes) {
  const std::string options = "mode=0700,size=" + std::to_string(bytes);
  if (::mount("tmpfs", mountpoint.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return FailErrno("mount a tmpfs of " + std::to_string(bytes) + " bytes at", mountpoint);
  }
  UniqueFd root(::open(mountpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return FailErrno("open the tmpfs at", mountpoint);
  struct statfs fs {};
  if (::fstatfs(root.get(), &fs) != 0) return FailErrno("look at the filesystem at", mountpoint);
  if (fs.f_type != TMPFS_MAGIC) {
    return Fail("mounted a tmpfs at '" + mountpoint + "', but another filesystem is seen there");
  }
  return root;
}

Result<Namespaces> OpenNamespaces(const ProcessIdentity& process) {
  const Result<UniqueFd> pidfd = OpenPidfd(process);
  if (!pidfd) return tl::unexpected(pidfd.error());
  const std::string folder = "/proc/" + std::to_string(process.pid) + "/ns/";
  Result<UniqueFd> mount = OpenNamespace(folder + "mnt");
  if (!mount) return tl::unexpected(mount.error());
  Result<UniqueFd> user = OpenNamespace(folder + "user");
  if (!user) return tl::unexpected(user.error());
  // Had the process ended before the opens, the paths may have led to another one.
  pollfd exited{pidfd->get(), POLLIN, 0};
  if (::poll(&exited, 1, 0) == 1) {
    return FailErrno("open the namespaces of process", std::to_string(process.pid), ESRCH);
  }
  const Result<bool> own_user = SameNamespace(user->get(), "/proc/self/ns/user");
  if (!own_user) return tl::unexpected(own_user.error());
  // Entering the user namespace that one is in is an error (setns(2)).
  if (*own_user) user->Reset();
  return Namespaces{*std::move(user), *std::move(mount)};
}

PrivateMountsProbe ProbePrivateMounts() {
  const auto cannot = [](const char* what) {
    return PrivateMountsProbe{false, false,
                              FailErrno(what, "to try private mounts").value().message};
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot("create a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return cannot("fork");
  if (child == 0) {
    const ProbeAnswer answer = TryPrivateMounts();
    const ssize_t written = ::write(write_end.get(), &answer, sizeof answer);
    ::_exit(written == sizeof answer ? 0 : 1);
  }
  write_end.Reset();
  ProbeAnswer answer{};
  ssize_t n = 0;
  while ((n = ::read(read_end.get(), &answer, sizeof answer)) < 0 && errno == EINTR) continue;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  if (n != sizeof answer) return {false, false, "the process that tried private mounts died"};
  return {answer.available, answer.user_namespace, answer.why_not};
}

}  // namespace shakedown
