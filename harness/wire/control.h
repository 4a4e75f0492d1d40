// Messages between the probe and the controller, on a SOCK_SEQPACKET Unix socket: one struct is one
// packet, native byte order (both ends are on one machine). Plain data, no pointers.
//
//   probe -> controller          controller -> probe
//   Hello                        Welcome, with the page's memfd as SCM_RIGHTS
//   Joined                       -
//   Held                         Release
//   Fired                        -
//
// A packet of another size, magic or version closes the connection. At EOF during a hold a
// reference rank exits; a foreign job goes on unarmed.
#pragma once

#include <cstdint>

#include "harness/wire/progress_page.h"

namespace shakedown {

inline constexpr uint32_t kControlMagic = 0x534B4331;  // "SKC1"

enum class MessageKind : uint32_t {
  kHello = 1,
  kWelcome = 2,
  kJoined = 3,
  kHeld = 4,
  kRelease = 5,
  kFired = 6
};

struct MessageHeader {
  uint32_t magic;
  MessageKind kind;
};

// Hints come from the environment (RANK, TORCHELASTIC_RESTART_COUNT) and may be wrong: workers and
// other helpers inherit them. -1: absent.
struct HelloMessage {
  MessageHeader header;
  int32_t pid;
  Role role;
  uint8_t padding[3];
  int32_t rank_hint;
  int32_t worker_hint;
  int32_t attempt_hint;
  int32_t incarnation;  // of a data worker: 0, then one more at each respawn
};

struct WelcomeMessage {
  MessageHeader header;
  uint32_t accepted;  // 0: not a process of this run; no descriptor comes with it
};

struct JoinedMessage {
  MessageHeader header;
  int32_t rank;
  int32_t world_size;
};

struct HeldMessage {
  MessageHeader header;
  uint32_t arm_id;
  uint32_t arm_index;
  uint32_t point;
  uint32_t step;
  uint32_t occurrence;
  Lane lane;
  uint8_t padding[3];
  int64_t t_ns;  // CLOCK_MONOTONIC when the point was reached
};

struct ReleaseMessage {
  MessageHeader header;
  uint32_t arm_index;
  uint32_t act;  // 1: run the arm's in-process action; 0: go on as if unarmed
};

// Sent after an arm without a hold has matched, just before its action runs.
struct FiredMessage {
  MessageHeader header;
  uint32_t arm_id;
  uint32_t arm_index;
  uint32_t point;
  uint32_t step;
  uint32_t occurrence;
  int64_t t_ns;
};

union AnyMessage {
  MessageHeader header;
  HelloMessage hello;
  WelcomeMessage welcome;
  JoinedMessage joined;
  HeldMessage held;
  ReleaseMessage release;
  FiredMessage fired;
};

}  // namespace shakedown
