#include "tests/support/private_tmpfs.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace shakedown::test_support {
namespace {

void WriteProc(const std::string& name, const std::string& text) {
  std::ofstream("/proc/self/" + name) << text;
}

// The holder: mounts, tells its errno, and waits for the end of the socket.
[[noreturn]] void Hold(const std::string& directory, int64_t bytes, int socket) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  int error = 0;
  const std::string options = "size=" + std::to_string(bytes);
  if (::unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) != 0) {
    error = errno;
  } else {
    if (uid != 0) {
      WriteProc("setgroups", "deny");
      WriteProc("uid_map", std::to_string(uid) + " " + std::to_string(uid) + " 1");
      WriteProc("gid_map", std::to_string(gid) + " " + std::to_string(gid) + " 1");
    }
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("shakedown", directory.c_str(), "tmpfs", 0, options.c_str()) != 0) {
      error = errno;
    }
  }
  char end = 0;
  if (::write(socket, &error, sizeof error) == sizeof error) {
    while (::read(socket, &end, 1) < 0 && errno == EINTR) {
    }
  }
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<PrivateTmpfs>> PrivateTmpfs::Make(const std::string& directory,
                                                         int64_t bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return FailErrno("make a socket pair for", directory);
  }
  std::unique_ptr<PrivateTmpfs> made(new PrivateTmpfs);
  made->alive_.Reset(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return FailErrno("fork a holder for", directory);
  if (pid == 0) {
    made->alive_.Reset();
    Hold(directory, bytes, theirs.get());
  }
  theirs.Reset();
  const Result<ProcessIdentity> identity = IdentityOf(pid);
  if (!identity) return tl::unexpected(identity.error());
  made->holder_ = *identity;
  int error = 0;
  if (::read(made->alive_.get(), &error, sizeof error) != sizeof error) error = EPIPE;
  if (error != 0) return FailErrno("mount a private tmpfs over", directory, error);
  const std::string proc = "/proc/" + std::to_string(pid);
  const auto open = [](const std::string& path, int flags) {
    return UniqueFd(::open(path.c_str(), flags | O_RDONLY | O_CLOEXEC));
  };
  made->directory_ = open(proc + "/root" + directory, O_DIRECTORY);
  made->mount_namespace_ = open(proc + "/ns/mnt", 0);
  if (::geteuid() != 0) made->user_namespace_ = open(proc + "/ns/user", 0);
  if (!made->directory_ || !made->mount_namespace_) return FailErrno("open", proc);
  return made;
}

PrivateTmpfs::~PrivateTmpfs() {
  alive_.Reset();
  if (holder_.pid > 0) ::waitpid(holder_.pid, nullptr, 0);
}

}  // namespace shakedown::test_support
