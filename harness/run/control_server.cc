#include "harness/run/control_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/base/log.h"

namespace shakedown {
namespace {

constexpr int kMaxGreeting = 256;  // connections that have not said hello

// Bytes of one packet, 0 at the end, -1 when there is none now, -2 on an error.
ssize_t Receive(int fd, AnyMessage* message) {
  const ssize_t n = ::recv(fd, message, sizeof *message, MSG_DONTWAIT | MSG_TRUNC);
  if (n >= 0) return n;
  return errno == EAGAIN || errno == EINTR ? -1 : -2;
}

bool SendWelcome(int socket, int page_fd) {
  WelcomeMessage welcome{{kControlMagic, MessageKind::kWelcome}, page_fd >= 0 ? 1u : 0u};
  iovec data{&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (page_fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* cmsg = CMSG_FIRSTHDR(&header);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(cmsg), &page_fd, sizeof page_fd);
  }
  return ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Listen(const std::string& path,
                                                             EventLoop& loop,
                                                             ProcessTable& processes,
                                                             Handlers handlers) {
  std::unique_ptr<ControlServer> server(new ControlServer(loop, processes, std::move(handlers)));
  server->path_ = path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail("cannot listen on '" + path + "': longer than a Unix socket's path may be");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  server->listener_.Reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server->listener_) return FailErrno("create", "the control socket");
  const mode_t mask = ::umask(0177);
  const int bound =
      ::bind(server->listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::umask(mask);
  if (bound != 0) return FailErrno("bind", path);
  if (::listen(server->listener_.get(), 128) != 0) return FailErrno("listen on", path);
  loop.WatchReadable(server->listener_.get(), [s = server.get()] { s->OnAccept(); });
  return server;
}

ControlServer::~ControlServer() {
  CloseAll();
  for (const UniqueFd& fd : greeting_) loop_.Unwatch(fd.get());
  loop_.Unwatch(listener_.get());
}

void ControlServer::CloseAll() {
  for (TrackedProcess* process : processes_.All()) Close(*process);
}

void ControlServer::Close(TrackedProcess& process) {
  if (!process.socket) return;
  loop_.Unwatch(process.socket.get());
  process.socket.Reset();
}

void ControlServer::OnAccept() {
  while (true) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (greeting_.size() >= kMaxGreeting) continue;
    const int raw = fd.get();
    greeting_.push_back(std::move(fd));
    loop_.WatchReadable(raw, [this, raw] { OnGreeting(raw); });
  }
}

void ControlServer::OnGreeting(int raw) {
  AnyMessage message{};
  const ssize_t n = Receive(raw, &message);
  if (n == -1) return;
  loop_.Unwatch(raw);
  const auto it = std::find_if(greeting_.begin(), greeting_.end(),
                               [raw](const UniqueFd& fd) { return fd.get() == raw; });
  SHAKEDOWN_ASSERT(it != greeting_.end());
  UniqueFd fd = std::move(*it);
  greeting_.erase(it);
  if (n != sizeof(HelloMessage) || message.header.magic != kControlMagic ||
      message.header.kind != MessageKind::kHello) {
    return;
  }
  // The kernel's word on who is at the other end, not the packet's.
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  if (peer.uid != ::geteuid() || !handlers_.admit(peer.pid)) {
    SendWelcome(fd.get(), -1);
    return;
  }
  Result<TrackedProcess*> process = processes_.Add(peer.pid, message.hello);
  if (!process) {
    LogWarning("process " + std::to_string(peer.pid) +
               " goes on unarmed: " + process.error().message);
    SendWelcome(fd.get(), -1);
    return;
  }
  TrackedProcess& p = **process;
  handlers_.hello(p);
  if (!SendWelcome(fd.get(), p.page_fd.get())) return;
  p.socket = std::move(fd);
  loop_.WatchReadable(p.socket.get(), [this, &p] { OnPacket(p); });
}

void ControlServer::OnPacket(TrackedProcess& process) {
  // A bounded number per wake-up, so that a process that floods cannot starve the others.
  for (int i = 0; i < 16 && process.socket; ++i) {
    AnyMessage message{};
    const ssize_t n = Receive(process.socket.get(), &message);
    if (n == -1) return;
    if (n <= 0 || !Dispatch(process, message, static_cast<size_t>(n))) {
      Close(process);
      return;
    }
  }
}

bool ControlServer::Dispatch(TrackedProcess& process, const AnyMessage& message, size_t bytes) {
  if (bytes < sizeof(MessageHeader) || message.header.magic != kControlMagic) return false;
  switch (message.header.kind) {
    case MessageKind::kJoined:
      if (bytes != sizeof message.joined) return false;
      handlers_.joined(process, message.joined);
      return true;
    case MessageKind::kHeld:
      if (bytes != sizeof message.held || message.held.arm_index >= kArms) return false;
      handlers_.held(process, message.held);
      return true;
    case MessageKind::kFired:
      if (bytes != sizeof message.fired || message.fired.arm_index >= kArms) return false;
      handlers_.fired(process, message.fired);
      return true;
    default:
      return false;
  }
}

void ControlServer::Release(TrackedProcess& process, uint32_t arm_index, bool act) {
  if (!process.socket) return;
  ReleaseMessage release{{kControlMagic, MessageKind::kRelease}, arm_index, act ? 1u : 0u};
  if (::send(process.socket.get(), &release, sizeof release, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    Close(process);
  }
}

}  // namespace shakedown
