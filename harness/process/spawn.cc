#include "harness/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace shakedown {
namespace {

enum class Stage : int {
  kSignals,
  kDescriptors,
  kSession,
  kUserNamespace,
  kMountNamespace,
  kDirectory,
  kExec,
};

// What the child writes into the pipe when it does not come to exec.
struct Failure {
  Stage stage;
  int code;
};

// Everything that the child needs, laid out before the clone: between clone and exec another thread
// of the parent may hold any lock, so the child must not allocate.
struct ChildPlan {
  std::vector<std::string> candidates;  // where the program may be, in order
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::string directory;
  std::vector<std::pair<int, int>> descriptors;
  std::vector<int> moved;    // room for the child's own numbers of `descriptors`
  std::vector<int> targets;  // numbers that stay open over exec, sorted
  bool null_needed[3] = {true, true, true};
  int first_free = 0;  // above every target
  bool new_session = false;
  int user_namespace_fd = -1;
  int mount_namespace_fd = -1;
  int error_pipe = -1;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string SearchPath(const std::vector<std::string>& environment) {
  constexpr std::string_view kPath = "PATH=";
  for (const std::string& variable : environment) {
    if (variable.starts_with(kPath)) return variable.substr(kPath.size());
  }
  const char* own = ::getenv("PATH");
  return own != nullptr ? own : "/usr/local/bin:/usr/bin:/bin";
}

std::vector<std::string> Candidates(const SpawnOptions& options) {
  const std::string& program = options.argv[0];
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> candidates;
  const std::string path = SearchPath(options.environment);
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string directory = path.substr(begin, end - begin);
    if (!directory.empty()) candidates.push_back(directory + "/" + program);
    begin = end + 1;
  }
  return candidates;
}

Result<ChildPlan> MakePlan(const SpawnOptions& options, int error_pipe) {
  ChildPlan plan;
  plan.candidates = Candidates(options);
  plan.argv = Pointers(options.argv);
  plan.envp = Pointers(options.environment);
  plan.directory = options.directory;
  if (options.mount_namespace_fd && plan.directory.empty()) {
    // Entering a mount namespace moves the process to that namespace's root.
    std::error_code error;
    plan.directory = std::filesystem::current_path(error).native();
    if (error) return FailErrno("find", "the current directory", error.value());
  }
  plan.descriptors = options.descriptors;
  plan.moved.resize(plan.descriptors.size());
  plan.targets = {0, 1, 2};
  for (const auto& [from, to] : plan.descriptors) {
    if (from < 0 || to < 0) {
      return Fail("cannot start '" + options.argv[0] + "': descriptor " + std::to_string(from) +
                      " as " + std::to_string(to) + " in the child",
                  EBADF);
    }
    plan.targets.push_back(to);
    if (to <= 2) plan.null_needed[to] = false;
  }
  std::sort(plan.targets.begin(), plan.targets.end());
  plan.targets.erase(std::unique(plan.targets.begin(), plan.targets.end()), plan.targets.end());
  plan.first_free = plan.targets.back() + 1;
  plan.new_session = options.new_session;
  plan.user_namespace_fd = options.user_namespace_fd.value_or(-1);
  plan.mount_namespace_fd = options.mount_namespace_fd.value_or(-1);
  plan.error_pipe = error_pipe;
  return plan;
}

// --- In the child: raw system calls only. The wrappers of libc, and a sanitizer's interceptors
// even more so, may take locks that another thread of the parent held at the clone.

[[noreturn]] void Give(int error_pipe, Stage stage) {
  const Failure failure{stage, errno};
  ::syscall(SYS_write, error_pipe, &failure, sizeof failure);
  while (true) ::syscall(SYS_exit_group, 127);
}

void DefaultSignals(int error_pipe) {
  // All zero is SIG_DFL, no flags, empty mask in the kernel's layout of every architecture; the
  // buffer is larger than any of them.
  const unsigned char default_action[64] = {};
  constexpr size_t kSignalSetBytes = 8;
  for (int signal = 1; signal <= 64; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    if (::syscall(SYS_rt_sigaction, signal, default_action, nullptr, kSignalSetBytes) != 0) {
      Give(error_pipe, Stage::kSignals);
    }
  }
  const uint64_t none = 0;
  if (::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, kSignalSetBytes) != 0) {
    Give(error_pipe, Stage::kSignals);
  }
}

// Puts every descriptor at its number and marks all others to be closed by exec. Returns where the
// error pipe is now.
int PlaceDescriptors(ChildPlan& plan) {
  int error_pipe = plan.error_pipe;
  const auto check = [&](long result) {
    if (result < 0) Give(error_pipe, Stage::kDescriptors);
    return static_cast<int>(result);
  };
  // First all of them above every target, so that placing one cannot overwrite another.
  error_pipe = check(::syscall(SYS_fcntl, error_pipe, F_DUPFD_CLOEXEC, plan.first_free));
  const auto lift = [&](int& fd) {
    fd = check(::syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, plan.first_free));
  };
  if (plan.user_namespace_fd >= 0) lift(plan.user_namespace_fd);
  if (plan.mount_namespace_fd >= 0) lift(plan.mount_namespace_fd);
  for (size_t i = 0; i < plan.descriptors.size(); ++i) {
    plan.moved[i] = plan.descriptors[i].first;
    lift(plan.moved[i]);
  }
  for (size_t i = 0; i < plan.descriptors.size(); ++i) {
    check(::syscall(SYS_dup3, plan.moved[i], plan.descriptors[i].second, 0));
  }
  for (int fd = 0; fd <= 2; ++fd) {
    if (!plan.null_needed[fd]) continue;
    int null = check(::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0));
    if (null != fd) check(::syscall(SYS_dup3, null, fd, 0));
  }
  unsigned first = 3;
  for (const int target : plan.targets) {
    const auto number = static_cast<unsigned>(target);
    if (number > first) {
      check(::syscall(SYS_close_range, first, number - 1, CLOSE_RANGE_CLOEXEC));
    }
    first = std::max(first, number + 1);
  }
  check(::syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC));
  return error_pipe;
}

void Exec(const ChildPlan& plan) {
  // As execvp: a file that may not be executed does not end the search, but is what is reported
  // when nothing better follows.
  int code = ENOENT;
  for (const std::string& candidate : plan.candidates) {
    ::syscall(SYS_execve, candidate.c_str(), plan.argv.data(), plan.envp.data());
    if (errno == EACCES) code = EACCES;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return;
  }
  errno = code;
}

#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
[[noreturn]] void
RunChild(ChildPlan& plan) {
  DefaultSignals(plan.error_pipe);
  const int error_pipe = PlaceDescriptors(plan);
  if (plan.new_session && ::syscall(SYS_setsid) < 0) Give(error_pipe, Stage::kSession);
  // The user namespace first: it gives the right to enter the mount namespace that it owns.
  if (plan.user_namespace_fd >= 0 &&
      ::syscall(SYS_setns, plan.user_namespace_fd, CLONE_NEWUSER) != 0) {
    Give(error_pipe, Stage::kUserNamespace);
  }
  if (plan.mount_namespace_fd >= 0 &&
      ::syscall(SYS_setns, plan.mount_namespace_fd, CLONE_NEWNS) != 0) {
    Give(error_pipe, Stage::kMountNamespace);
  }
  if (!plan.directory.empty() && ::syscall(SYS_chdir, plan.directory.c_str()) != 0) {
    Give(error_pipe, Stage::kDirectory);
  }
  Exec(plan);
  Give(error_pipe, Stage::kExec);
}

// --- In the parent.

struct Cloned {
  pid_t pid = -1;
  int pidfd = -1;
};

// In the child pid is 0. A plain copy of the address space: a child that shared it (vfork) would
// have to be trusted with the parent's memory.
Result<Cloned> CloneWithPidfd() {
  Cloned cloned;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&cloned.pidfd);
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid >= 0) {
    cloned.pid = static_cast<pid_t>(pid);
    return cloned;
  }
  // Container runtimes refuse clone3 with ENOSYS or EPERM, since their filters cannot look into its
  // arguments.
  if (errno != ENOSYS && errno != EPERM) return FailErrno("clone3", "for a new process");
  cloned.pid = ::fork();
  if (cloned.pid < 0) return FailErrno("fork", "a new process");
  if (cloned.pid > 0) {
    // Not reaped by anybody yet, so the pid is the child's.
    cloned.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, cloned.pid, 0));
    if (cloned.pidfd < 0) {
      const auto error = FailErrno("open a pidfd of process", std::to_string(cloned.pid));
      ::kill(cloned.pid, SIGKILL);
      ::waitpid(cloned.pid, nullptr, 0);
      return error;
    }
  }
  return cloned;
}

// With all signals blocked: no handler of the parent may run in the child.
Result<Cloned> StartChild(ChildPlan& plan) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<Cloned> cloned = CloneWithPidfd();
  if (cloned && cloned->pid == 0) RunChild(plan);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return cloned;
}

std::string Describe(const Failure& failure, const SpawnOptions& options, const ChildPlan& plan) {
  const std::string error = DescribeErrno(failure.code);
  switch (failure.stage) {
    case Stage::kSignals:
      return "resetting signals: " + error;
    case Stage::kDescriptors:
      return "passing its descriptors: " + error;
    case Stage::kSession:
      return "setsid: " + error;
    case Stage::kUserNamespace:
      return "entering the user namespace: " + error;
    case Stage::kMountNamespace:
      return "entering the mount namespace: " + error;
    case Stage::kDirectory:
      return "changing to directory '" + plan.directory + "': " + error;
    case Stage::kExec:
      break;
  }
  if (failure.code == ENOENT && options.argv[0].find('/') == std::string::npos) {
    return error + "; it is not in PATH (" + SearchPath(options.environment) + ")";
  }
  if (failure.code == ENOENT) return error + "; check the path, and the interpreter of a script";
  return error;
}

// nullopt when exec closed the pipe.
std::optional<Failure> ReadFailure(int pipe) {
  Failure failure{};
  while (true) {
    const ssize_t n = ::read(pipe, &failure, sizeof failure);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof failure) return std::nullopt;
    return failure;
  }
}

Result<std::optional<WaitStatus>> WaitWith(int pidfd, int options) {
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | options) != 0) {
    if (errno != EINTR) return FailErrno("wait for a process through", "its pidfd");
  }
  if (info.si_pid == 0) return std::optional<WaitStatus>();
  return std::optional(WaitStatus::FromSiginfo(info));
}

// From include/uapi/linux/pidfd.h of Linux 6.15; Debian 12's headers are older.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroupid;
  uint32_t pid, tgid, ppid;
  uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64, "PIDFD_INFO_SIZE_VER0");
constexpr uint64_t kPidfdInfoExit = 1U << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

}  // namespace

Result<SpawnedProcess> Spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return Fail("cannot start a process: the command is empty", EINVAL);
  const std::string stage = "cannot start '" + options.argv[0] + "'";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("create a pipe to start", options.argv[0]);
  UniqueFd error_read(ends[0]);
  UniqueFd error_write(ends[1]);
  Result<ChildPlan> plan = MakePlan(options, error_write.get());
  if (!plan) return tl::unexpected(plan.error());

  const Result<Cloned> cloned = StartChild(*plan);
  if (!cloned) return Wrap(stage, cloned.error());
  SpawnedProcess process;
  process.pid = cloned->pid;
  process.pidfd.Reset(cloned->pidfd);
  error_write.Reset();
  const std::optional<Failure> failure = ReadFailure(error_read.get());
  if (failure) {
    SHAKEDOWN_TRY(Wait(process.pidfd.get()));
    return Fail(stage + ": " + Describe(*failure, options, *plan), failure->code);
  }
  // Nobody has reaped it yet, so /proc still has it even if it has ended.
  Result<ProcessIdentity> identity = IdentityOf(process.pid);
  if (!identity) {
    SHAKEDOWN_TRY(SignalPidfd(process.pidfd.get(), SIGKILL));
    SHAKEDOWN_TRY(Wait(process.pidfd.get()));
    return Wrap(stage, identity.error());
  }
  process.identity = *std::move(identity);
  return process;
}

Result<std::optional<WaitStatus>> TryWait(int pidfd) { return WaitWith(pidfd, WNOHANG); }

Result<WaitStatus> Wait(int pidfd) {
  const Result<std::optional<WaitStatus>> status = WaitWith(pidfd, 0);
  if (!status) return tl::unexpected(status.error());
  SHAKEDOWN_ASSERT(status->has_value());
  return **status;
}

std::optional<WaitStatus> ExitFromPidfd(int pidfd) {
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  if (::ioctl(pidfd, kPidfdGetInfo, &info) != 0 || (info.mask & kPidfdInfoExit) == 0) {
    return std::nullopt;
  }
  return WaitStatus::FromWord(info.exit_code);
}

}  // namespace shakedown
