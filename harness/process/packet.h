// Packets over a SOCK_SEQPACKET socket of the AF_UNIX family: bytes, with descriptors beside them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"

namespace shakedown {

// A packet has to fit into the socket's buffer, 208 KiB by default.
inline constexpr size_t kMaxPacketBytes = 32768;
inline constexpr size_t kMaxPacketDescriptors = 8;

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> descriptors;  // close-on-exec
};

// Sends a copy of each descriptor. An end that is gone is an Error (EPIPE), not a signal.
// REQUIRES: no more than the two limits.
Status SendPacket(int socket, std::string_view bytes, const std::vector<int>& descriptors = {});

// Blocks for the next packet. nullopt: the other end is gone. One that is longer than the limits is
// an Error (EBADMSG).
Result<std::optional<Packet>> ReceivePacket(int socket);

}  // namespace shakedown
