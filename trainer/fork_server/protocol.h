// What launcher and fork server say to each other over a SOCK_SEQPACKET socket; both are of one
// build, so there is no version.
//   server -> launcher   Reply: "I am one and can fork", or why not
//   launcher -> server   NAME=value\0... for the next rank, with its stdout, stderr and heartbeat
//   server -> launcher   Reply: the rank, or why there is none
//   end of the socket    the server exits
#pragma once

#include <cstdint>

namespace shakedown {

// In the environment of a process that is to be a fork server: the number of its socket.
inline constexpr char kForkServerFd[] = "SHAKEDOWN_FORK_SERVER_FD";
inline constexpr int kForkServerSocket = 3;
inline constexpr int kHeartbeatFdInRank = 3;

struct ForkReply {
  int32_t pid = 0;    // of the server itself, or of the rank
  int32_t error = 0;  // an errno; 0: all is well
  char tried[120] = {};
};

}  // namespace shakedown
