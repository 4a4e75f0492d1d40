#include "trainer/fork_server/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "harness/base/log.h"
#include "harness/process/identity.h"
#include "harness/process/packet.h"
#include "harness/wire/environment.h"
#include "trainer/fork_server/protocol.h"

namespace shakedown {
namespace {

// A fork of a loaded LibTorch takes milliseconds, and the end of an idle server as well.
constexpr Nanoseconds kAnswer = std::chrono::seconds(10);

// Until one of the first descriptors is readable; the index of that one. ETIMEDOUT at `until`.
Result<size_t> AwaitOne(std::vector<pollfd> fds, MonoTime until) {
  while (true) {
    const int64_t left_ms = (until - MonoNow()) / Milliseconds(1) + 1;
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left_ms, 0)));
    if (ready < 0 && errno != EINTR) return FailErrno("wait for", "the fork server");
    if (ready > 0) break;
    if (MonoNow() >= until) return Fail("the fork server did not answer in time", ETIMEDOUT);
  }
  const auto first =
      std::find_if(fds.begin(), fds.end(), [](const pollfd& fd) { return fd.revents; });
  return static_cast<size_t>(first - fds.begin());
}

Result<pid_t> ReadReply(int socket) {
  const Result<std::optional<Packet>> packet = ReceivePacket(socket);
  if (!packet) return tl::unexpected(packet.error());
  if (!*packet) return Fail("the fork server has ended", EPIPE);
  ForkReply reply;
  if ((*packet)->bytes.size() != sizeof reply) return Fail("not a fork server's reply", EBADMSG);
  std::memcpy(&reply, (*packet)->bytes.data(), sizeof reply);
  if (reply.error == 0) return reply.pid;
  reply.tried[sizeof reply.tried - 1] = '\0';
  return FailErrno(reply.tried, "a rank by the fork server", reply.error);
}

}  // namespace

Result<ForkServer> ForkServer::Start(const std::vector<std::string>& command, Nanoseconds limit,
                                     int stop_fd) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return FailErrno("make a socket for", "the fork server");
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  SpawnOptions spawn;
  spawn.argv = command;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    // A rank says hello to the controller, the server is nobody's.
    const std::string_view text = *variable;
    if (text.substr(0, text.find('=')) != env::kControlSocket) spawn.environment.emplace_back(text);
  }
  spawn.environment.push_back(std::string(kForkServerFd) + "=" + std::to_string(kForkServerSocket));
  spawn.descriptors = {{STDERR_FILENO, STDOUT_FILENO},
                       {STDERR_FILENO, STDERR_FILENO},
                       {theirs.get(), kForkServerSocket}};
  spawn.new_session = true;
  Result<SpawnedProcess> process = Spawn(spawn);
  if (!process) return tl::unexpected(process.error());
  ForkServer server(*std::move(process), std::move(ours));
  const Result<size_t> first = AwaitOne({{server.socket_.get(), POLLIN, 0},
                                         {server.process_.pidfd.get(), POLLIN, 0},
                                         {stop_fd, POLLIN, 0}},
                                        MonoNow() + limit);
  if (!first) return tl::unexpected(first.error());
  if (*first == 2) return Fail("told to stop while the fork server started", ECANCELED);
  if (*first == 1) return Fail("'" + command[0] + "' ended instead of becoming a fork server");
  if (const Result<pid_t> ready = ReadReply(server.socket_.get()); !ready) {
    return tl::unexpected(ready.error());
  }
  return server;
}

ForkServer::~ForkServer() {
  if (!process_.pidfd) return;  // moved from
  socket_.Reset();
  if (!AwaitOne({{process_.pidfd.get(), POLLIN, 0}}, MonoNow() + kAnswer)) {
    if (const Status sent = SignalPidfd(process_.pidfd.get(), SIGKILL); !sent) {
      LogError("the fork server: " + sent.error().message);
    }
  }
  if (const auto status = Wait(process_.pidfd.get()); !status) LogError(status.error().message);
}

Result<SpawnedProcess> ForkServer::Fork(const std::vector<std::string>& settings, int out, int err,
                                        int heartbeat) {
  std::string request;
  for (const std::string& setting : settings) request.append(setting).push_back('\0');
  SHAKEDOWN_TRY(SendPacket(socket_.get(), request, {out, err, heartbeat}));
  const Result<size_t> answered = AwaitOne({{socket_.get(), POLLIN, 0}}, MonoNow() + kAnswer);
  if (!answered) return tl::unexpected(answered.error());
  const Result<pid_t> pid = ReadReply(socket_.get());
  if (!pid) return tl::unexpected(pid.error());
  // Our child, and not waited for yet, so the pid is nobody else's.
  Result<ProcessIdentity> identity = IdentityOf(*pid);
  if (!identity) return tl::unexpected(identity.error());
  Result<UniqueFd> pidfd = OpenPidfd(*identity);
  if (!pidfd) return tl::unexpected(pidfd.error());
  return SpawnedProcess{*pid, *std::move(pidfd), *std::move(identity)};
}

}  // namespace shakedown
