#include "harness/process/packet.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace shakedown {
namespace {

struct alignas(cmsghdr) ControlBuffer {
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxPacketDescriptors)> bytes{};
};

std::vector<UniqueFd> TakeDescriptors(msghdr& message) {
  std::vector<UniqueFd> descriptors;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

Status SendPacket(int socket, std::string_view bytes, const std::vector<int>& descriptors) {
  SHAKEDOWN_ASSERT(bytes.size() <= kMaxPacketBytes);
  SHAKEDOWN_ASSERT(descriptors.size() <= kMaxPacketDescriptors);
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  ControlBuffer control;
  if (!descriptors.empty()) {
    const size_t size = sizeof(int) * descriptors.size();
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), descriptors.data(), size);
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return FailErrno("send a packet to", "the other end of a socket");
  }
  return {};
}

Result<std::optional<Packet>> ReceivePacket(int socket) {
  Packet packet;
  packet.bytes.resize(kMaxPacketBytes);
  iovec data{packet.bytes.data(), packet.bytes.size()};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t n = 0;
  while ((n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == ECONNRESET) return std::optional<Packet>();
    if (errno != EINTR) return FailErrno("receive a packet from", "the other end of a socket");
  }
  packet.descriptors = TakeDescriptors(message);
  if (n == 0) return std::optional<Packet>();
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Fail("a packet was cut short", EBADMSG);
  }
  packet.bytes.resize(static_cast<size_t>(n));
  return std::optional(std::move(packet));
}

}  // namespace shakedown
