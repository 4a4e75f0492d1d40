#include "tests/support/control_double.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/support/await.h"

namespace shakedown::test_support {

void PutArm(ProgressPage* page, size_t index, const ArmFields& fields) {
  Arm& arm = page->control.arms[index];
  arm.id = fields.id;
  arm.point = static_cast<uint32_t>(fields.point);
  arm.flags = fields.flags;
  arm.step = fields.step;
  arm.occurrence = fields.occurrence;
  arm.seen.store(0);
  arm.action = fields.action;
  arm.argument = fields.argument;
  arm.state.store(static_cast<uint32_t>(ArmState::kArmed));
  page->control.armed.fetch_or(uint64_t{1} << static_cast<unsigned>(fields.point));
}

UniqueFd MakePageFd(int seals, size_t bytes) {
  UniqueFd fd(::memfd_create("shakedown-page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return {};
  if (seals != 0 && ::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return {};
  return fd;
}

namespace {

Status SendWelcome(int socket, const WelcomeMessage& welcome, size_t bytes, int fd) {
  WelcomeMessage copy = welcome;
  iovec content{&copy, bytes};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return FailErrno("send", "a welcome");
  return {};
}

}  // namespace

MetProcess::~MetProcess() {
  if (page_ != nullptr) ::munmap(page_, kPageBytes);
}

Result<AnyMessage> MetProcess::Receive(MessageKind kind, size_t bytes) {
  if (!AwaitReadable(socket_.get())) return Fail("no packet came");
  AnyMessage message{};
  const ssize_t n = ::recv(socket_.get(), &message, sizeof message, MSG_TRUNC);
  if (n < 0) return FailErrno("receive from", "a process");
  if (n == 0) return Fail("the process is gone");
  if (message.header.magic != kControlMagic || message.header.kind != kind ||
      static_cast<size_t>(n) != bytes) {
    return Fail("another packet came: kind " +
                std::to_string(static_cast<uint32_t>(message.header.kind)) + " of " +
                std::to_string(n) + " bytes");
  }
  return message;
}

Result<HeldMessage> MetProcess::AwaitHeld() {
  return Receive(MessageKind::kHeld, sizeof(HeldMessage)).map([](const AnyMessage& m) {
    return m.held;
  });
}

Result<FiredMessage> MetProcess::AwaitFired() {
  return Receive(MessageKind::kFired, sizeof(FiredMessage)).map([](const AnyMessage& m) {
    return m.fired;
  });
}

Result<JoinedMessage> MetProcess::AwaitJoined() {
  return Receive(MessageKind::kJoined, sizeof(JoinedMessage)).map([](const AnyMessage& m) {
    return m.joined;
  });
}

bool MetProcess::SomethingArrives(Nanoseconds patience) const {
  return AwaitReadable(socket_.get(), patience);
}

Status MetProcess::Release(uint32_t arm_index, bool act) {
  const ReleaseMessage release{{kControlMagic, MessageKind::kRelease}, arm_index, act ? 1u : 0u};
  return SendRaw(&release, sizeof release);
}

Status MetProcess::SendRaw(const void* bytes, size_t size) {
  if (::send(socket_.get(), bytes, size, MSG_NOSIGNAL) < 0)
    return FailErrno("send to", "a process");
  return {};
}

Result<std::unique_ptr<ControlDouble>> ControlDouble::Listen() {
  auto control = std::make_unique<ControlDouble>();
  control->path_ = control->directory_.path() / "control";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  SHAKEDOWN_ASSERT(control->path_.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, control->path_.c_str(), control->path_.size() + 1);
  control->listener_.Reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!control->listener_ ||
      ::bind(control->listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) !=
          0 ||
      ::listen(control->listener_.get(), 64) != 0) {
    return FailErrno("listen on", control->path_);
  }
  return control;
}

Result<std::unique_ptr<MetProcess>> ControlDouble::Accept() {
  if (!AwaitReadable(listener_.get())) return Fail("no process came");
  std::unique_ptr<MetProcess> process(new MetProcess);
  process->socket_.Reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!process->socket_) return FailErrno("accept on", path_);
  const Result<AnyMessage> hello = process->Receive(MessageKind::kHello, sizeof(HelloMessage));
  if (!hello) return tl::unexpected(hello.error());
  process->hello_ = hello->hello;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(process->socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return FailErrno("ask for the peer of", path_);
  }
  const Result<ProcessIdentity> identity = IdentityOf(peer.pid);
  if (!identity) return tl::unexpected(identity.error());
  process->identity_ = *identity;
  return process;
}

Result<std::unique_ptr<MetProcess>> ControlDouble::Meet(
    const std::function<void(const HelloMessage&, ProgressPage*)>& arm) {
  Result<std::unique_ptr<MetProcess>> process = Accept();
  if (!process) return process;
  const UniqueFd page = MakePageFd(F_SEAL_SHRINK | F_SEAL_GROW);
  if (!page) return FailErrno("make", "a page");
  void* memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
  if (memory == MAP_FAILED) return FailErrno("map", "a page");
  (*process)->page_ = static_cast<ProgressPage*>(memory);
  if (arm) arm((*process)->hello_, (*process)->page_);
  const WelcomeMessage welcome{{kControlMagic, MessageKind::kWelcome}, 1};
  if (Status sent = SendWelcome((*process)->socket_.get(), welcome, sizeof welcome, page.get());
      !sent) {
    return tl::unexpected(sent.error());
  }
  return process;
}

Result<std::unique_ptr<MetProcess>> ControlDouble::MeetWith(const WelcomeMessage& welcome,
                                                            size_t bytes, int fd) {
  Result<std::unique_ptr<MetProcess>> process = Accept();
  if (!process) return process;
  if (Status sent = SendWelcome((*process)->socket_.get(), welcome, bytes, fd); !sent) {
    return tl::unexpected(sent.error());
  }
  return process;
}

Result<std::unique_ptr<MetProcess>> ControlDouble::MeetInSilence() { return Accept(); }

}  // namespace shakedown::test_support
