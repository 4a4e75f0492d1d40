// What the probe's files share. Nobody else includes this.
#pragma once

#include <cstdint>

#include "injectors/probe/probe.h"

namespace shakedown::probe::internal {

// One arm that a pass has taken.
struct Match {
  uint32_t arm_id = 0;
  uint32_t arm_index = 0;
  Point point = Point::kNone;
  uint32_t step = 0;
  uint32_t occurrence = 0;
  int64_t reached_ns = 0;
};

enum class Answer { kAct, kGoOn };

int64_t MonotonicNs();

// control_client.cc: the connection to the controller.

// Says hello, waits at most a second for the page and maps it. nullptr when there is no controller,
// or this is not a process of its run. `attempt` receives the attempt as the environment tells it.
ProgressPage* SayHello(uint8_t* attempt);
void SendJoined(int rank, int world_size);
void SendFired(const Match& match);
// Reports and waits for the release, one thread of the process at a time. When the controller is
// gone, a process of the reference job exits here; another goes on unarmed.
Answer Hold(const Match& match);
// In the child of a fork: forgets the connection and unmaps `shared` unless it is nullptr.
void DropConnection(ProgressPage* shared);

// in_process.cc: faults that run in the process itself.

Verdict Act(ArmAction action, int64_t argument, uint32_t step);
void DropMemoryFault();

}  // namespace shakedown::probe::internal
