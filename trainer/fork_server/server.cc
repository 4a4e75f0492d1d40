#include "trainer/fork_server/server.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include "harness/process/packet.h"
#include "harness/wire/exit_code.h"
#include "trainer/fork_server/protocol.h"

namespace shakedown {
namespace {

ForkReply Refusal(int error, const char* tried) {
  ForkReply reply;
  reply.error = error;
  (void)std::snprintf(reply.tried, sizeof reply.tried, "%s", tried);
  return reply;
}

bool Send(const ForkReply& reply) {
  return SendPacket(kForkServerSocket, {reinterpret_cast<const char*>(&reply), sizeof reply})
      .has_value();
}

int Threads() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  return error ? 0 : static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// Where the C library keeps the main thread's id: fork() has the kernel write the child's there,
// and so must we. Null where the kernel does not tell (CONFIG_CHECKPOINT_RESTORE).
int* ThreadIdOfLibrary() {
  int* address = nullptr;
  if (::prctl(PR_GET_TID_ADDRESS, &address) != 0) return nullptr;
  return address != nullptr && *address == ::gettid() ? address : nullptr;
}

// fork(), but the child is our parent's (CLONE_PARENT): who starts the ranks is who waits for them.
// What fork() does beside the system call is for other threads, and there are none.
pid_t ForkForParent(int* library_tid) {
  constexpr unsigned long kFlags =
      CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
  return static_cast<pid_t>(::syscall(SYS_clone, kFlags, nullptr, nullptr, library_tid, 0UL));
}

[[noreturn]] void EndRank(const char* tried) {
  (void)std::fprintf(stderr, "cannot %s in a forked rank: %s\n", tried, std::strerror(errno));
  ::_exit(kRankUsage);
}

// Descriptors as Spawn makes them: only those that are named.
void TakeDescriptors(const Packet& request) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const int wanted[] = {STDOUT_FILENO, STDERR_FILENO, kHeartbeatFdInRank};
  if (!null || ::dup2(null.get(), STDIN_FILENO) < 0) EndRank("open /dev/null");
  for (size_t i = 0; i < std::size(wanted); ++i) {
    // The received ones are all above: 0 to 3 were taken when they came.
    if (::dup2(request.descriptors[i].get(), wanted[i]) < 0) EndRank("place a descriptor");
  }
  if (::close_range(kHeartbeatFdInRank + 1, ~0U, 0) != 0) EndRank("close descriptors");
}

void BecomeRank(Packet& request) {
  if (::setsid() < 0) EndRank("start a session");
  TakeDescriptors(request);
  for (UniqueFd& fd : request.descriptors) (void)fd.Release();  // close_range has closed them
  ::unsetenv(kForkServerFd);
  for (size_t at = 0; at < request.bytes.size();) {
    const char* setting = request.bytes.c_str() + at;
    const char* value = std::strchr(setting, '=');
    if (value != nullptr &&
        ::setenv(std::string(setting, value).c_str(), value + 1, /*overwrite=*/1) != 0) {
      EndRank("set the environment");
    }
    at += std::strlen(setting) + 1;
  }
}

}  // namespace

bool ServeForks() {
  const char* asked = std::getenv(kForkServerFd);
  if (asked == nullptr || std::to_string(kForkServerSocket) != asked) return false;
  int* const library_tid = ThreadIdOfLibrary();
  ForkReply ready;
  ready.pid = ::getpid();
  if (library_tid == nullptr) ready = Refusal(ENOTSUP, "find the C library's thread id");
  if (Threads() != 1) ready = Refusal(EBUSY, "fork from a process of one thread");
  if (!Send(ready)) ::_exit(kRankUsage);

  while (true) {
    Result<std::optional<Packet>> request = ReceivePacket(kForkServerSocket);
    if (!request || !*request) ::_exit(0);
    ForkReply reply;
    if ((*request)->descriptors.size() != 3) {
      reply = Refusal(EBADMSG, "find stdout, stderr and heartbeat in the request");
    } else {
      reply.pid = ForkForParent(library_tid);
      if (reply.pid == 0) {
        BecomeRank(**request);
        return true;
      }
      if (reply.pid < 0) reply = Refusal(errno, "fork");
    }
    if (!Send(reply)) ::_exit(0);
  }
}

}  // namespace shakedown
