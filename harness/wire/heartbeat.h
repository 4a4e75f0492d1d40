// How the launcher's progress watchdog sees the ranks: one memfd per rank, made by the launcher and
// inherited at SHAKEDOWN_HEARTBEAT_FD. Part of the job, not of the harness. Only a completed step
// may be written: a beat from a timer thread would hide a hang.
#pragma once

#include <atomic>
#include <cstdint>

namespace shakedown {

struct Heartbeat {
  std::atomic<uint64_t> step;   // last completed step of this attempt, 0 before the first
  std::atomic<uint64_t> ready;  // 1 once the rank has joined the group and loaded its state
};

}  // namespace shakedown
