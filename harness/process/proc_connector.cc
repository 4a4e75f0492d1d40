#include "harness/process/proc_connector.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace shakedown {
namespace {

// The kernel acknowledges a subscription with an event of its own; one that it ignores (no
// CAP_NET_ADMIN) is not answered at all.
constexpr int kAnswerMs = 100;

bool Subscribe(int socket) {
  struct {
    nlmsghdr netlink;
    alignas(NLMSG_ALIGNTO) char rest[NLMSG_ALIGN(sizeof(cn_msg) + sizeof(proc_cn_mcast_op))];
  } message{};
  message.netlink.nlmsg_len = NLMSG_LENGTH(sizeof(cn_msg) + sizeof(proc_cn_mcast_op));
  message.netlink.nlmsg_type = NLMSG_DONE;
  message.netlink.nlmsg_pid = static_cast<uint32_t>(::getpid());
  cn_msg header{};
  header.id = {CN_IDX_PROC, CN_VAL_PROC};
  header.len = sizeof(proc_cn_mcast_op);
  const proc_cn_mcast_op listen = PROC_CN_MCAST_LISTEN;
  char* data = static_cast<char*>(NLMSG_DATA(&message.netlink));
  std::memcpy(data, &header, sizeof header);
  std::memcpy(data + sizeof header, &listen, sizeof listen);
  return ::send(socket, &message, message.netlink.nlmsg_len, 0) >= 0;
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
  if (!Subscribe(connector.socket_.get())) return FailErrno("subscribe to", "the process connector");
  pollfd answer{connector.socket_.get(), POLLIN, 0};
  if (::poll(&answer, 1, kAnswerMs) <= 0) {
    return Fail("cannot subscribe to the process connector: the kernel did not answer");
  }
  return connector;
}

std::vector<ProcExit> ProcConnector::Read() {
  std::vector<ProcExit> exits;
  alignas(nlmsghdr) char buffer[8192];
  while (true) {
    const ssize_t n = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n <= 0) return exits;
    auto left = static_cast<unsigned>(n);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_len < NLMSG_LENGTH(sizeof(cn_msg) + sizeof(proc_event))) continue;
      proc_event event;
      std::memcpy(&event, static_cast<char*>(NLMSG_DATA(message)) + sizeof(cn_msg), sizeof event);
      if (event.what != proc_event::PROC_EVENT_EXIT) continue;
      // One event per thread: the process ends with its leader's.
      const auto& exit = event.event_data.exit;
      if (exit.process_pid != exit.process_tgid) continue;
      exits.push_back({exit.process_tgid, WaitStatus::FromWord(static_cast<int>(exit.exit_code))});
    }
  }
}

}  // namespace shakedown
