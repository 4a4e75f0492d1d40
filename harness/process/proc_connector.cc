#include "harness/process/proc_connector.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "harness/base/time.h"

namespace shakedown {
namespace {

// The kernel acknowledges a subscription with an event of its own. Older kernels ignore one that is
// not allowed (no CAP_NET_ADMIN, not the initial namespaces) without an answer.
constexpr Milliseconds kAnswerDeadline{200};

// The answer carries this number plus one, and goes to every listener of the machine.
uint32_t OwnNumber() { return static_cast<uint32_t>(::getpid()); }

Status Subscribe(int socket) {
  struct {
    nlmsghdr netlink;
    alignas(NLMSG_ALIGNTO) char rest[NLMSG_ALIGN(sizeof(cn_msg) + sizeof(proc_cn_mcast_op))];
  } message{};
  message.netlink.nlmsg_len = NLMSG_LENGTH(sizeof(cn_msg) + sizeof(proc_cn_mcast_op));
  message.netlink.nlmsg_type = NLMSG_DONE;
  cn_msg header{};
  header.id = {CN_IDX_PROC, CN_VAL_PROC};
  header.ack = OwnNumber();
  header.len = sizeof(proc_cn_mcast_op);
  const proc_cn_mcast_op listen = PROC_CN_MCAST_LISTEN;
  char* data = static_cast<char*>(NLMSG_DATA(&message.netlink));
  std::memcpy(data, &header, sizeof header);
  std::memcpy(data + sizeof header, &listen, sizeof listen);
  if (::send(socket, &message, message.netlink.nlmsg_len, 0) < 0) {
    return FailErrno("subscribe to", "the process connector");
  }
  return {};
}

// Hands each event of the kernel that waits in the socket to `take`(cn_msg, proc_event).
template <typename Take>
void ReadEvents(int socket, Take take) {
  alignas(nlmsghdr) char buffer[8192];
  while (true) {
    sockaddr_nl sender{};
    socklen_t sender_bytes = sizeof sender;
    const ssize_t n = ::recvfrom(socket, buffer, sizeof buffer, MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&sender), &sender_bytes);
    // ENOBUFS: some were dropped, and the rest is there.
    if (n < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
    if (n <= 0) return;
    if (sender.nl_pid != 0) continue;  // another process may write to us, but is not the kernel
    auto left = static_cast<unsigned>(n);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_len < NLMSG_LENGTH(sizeof(cn_msg) + sizeof(proc_event))) continue;
      const char* data = static_cast<char*>(NLMSG_DATA(message));
      cn_msg header;
      proc_event event;
      std::memcpy(&header, data, sizeof header);
      std::memcpy(&event, data + sizeof header, sizeof event);
      take(header, event);
    }
  }
}

Status AwaitAnswer(int socket) {
  const MonoTime deadline = MonoNow() + kAnswerDeadline;
  std::optional<uint32_t> answer;  // an errno
  while (!answer) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - MonoNow()).count();
    pollfd ready{socket, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) == 0) {
      return Fail(
          "cannot subscribe to the process connector: the kernel did not answer; it tells root in "
          "the initial user and pid namespaces only",
          ETIMEDOUT);
    }
    ReadEvents(socket, [&](const cn_msg& header, const proc_event& event) {
      const bool ours = header.ack == OwnNumber() + 1;
      if (event.what == proc_event::PROC_EVENT_NONE && ours) answer = event.event_data.ack.err;
    });
  }
  if (*answer != 0) {
    return FailErrno("subscribe to", "the process connector", static_cast<int>(*answer));
  }
  return {};
}

}  // namespace

Result<ProcConnector> ProcConnector::Open() {
  ProcConnector connector;
  connector.socket_.Reset(
      ::socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR));
  if (!connector.socket_) return FailErrno("open", "the process connector");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  if (::bind(connector.socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return FailErrno("listen to", "the process connector");
  }
  SHAKEDOWN_TRY(Subscribe(connector.socket_.get()));
  SHAKEDOWN_TRY(AwaitAnswer(connector.socket_.get()));
  return connector;
}

std::vector<ProcExit> ProcConnector::Read() {
  std::vector<ProcExit> exits;
  ReadEvents(socket_.get(), [&](const cn_msg&, const proc_event& event) {
    if (event.what != proc_event::PROC_EVENT_EXIT) return;
    // One event per thread: the process ends with its leader's.
    const auto& exit = event.event_data.exit;
    if (exit.process_pid != exit.process_tgid) return;
    exits.push_back({exit.process_tgid, WaitStatus::FromWord(static_cast<int>(exit.exit_code))});
  });
  return exits;
}

}  // namespace shakedown
