// The probe: the part of Shakedown inside every rank and data worker. No torch, no exceptions.
//
// Without a controller (SHAKEDOWN_CONTROL_SOCKET unset) everything here works on a page of its own
// that nobody reads, so callers never ask whether there is one.
//
// The hello happens before main() (a constructor in this library); it is bounded (5 s) and a
// failure leaves the process unarmed. After fork() the child drops page and socket (pthread_atfork)
// and is not a process of the run until it says Hello() anew, which an exec'ed worker does by
// itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "harness/wire/progress_page.h"

namespace shakedown::probe {

// What the caller has to do after passing a point.
struct Verdict {
  ArmAction action = ArmAction::kNone;
  int64_t argument = 0;
  explicit operator bool() const { return action != ArmAction::kNone; }
};

namespace internal {
extern ProgressPage* page;  // never null
// constinit: without it each access from another file would call a wrapper that may initialise it.
extern constinit thread_local Lane lane;  // default kMain
extern std::atomic<bool> memory_armed;
extern uint8_t attempt;
Verdict Matched(Point point, uint32_t step);  // slow path: an arm may match here
bool RefuseSlow(uint64_t bytes, uint64_t in_use);
}  // namespace internal

// Passes a fault point. Unarmed: one relaxed store and one relaxed load. Stall and delay happen
// inside; what only the caller can do comes back (kIoError: let the operation that follows fail
// with errno `argument`). kRefuseMemory and kMemoryBudget arm RefuseAllocation and return kNone.
inline Verdict Pass(Point point, uint32_t step) {
  ProgressPage& page = *internal::page;
  std::atomic<uint64_t>& word = page.observed.lanes[static_cast<size_t>(internal::lane)];
  // In this order only the count waits for the word that the last pass stored.
  const uint64_t place = Pack({internal::attempt, point, step, 0});
  const uint64_t count = (word.load(std::memory_order_relaxed) + 1) & kCountMask;
  word.store(place | count, std::memory_order_relaxed);
  if (page.control.armed.load(std::memory_order_relaxed) >> static_cast<unsigned>(point) & 1)
      [[unlikely]] {
    return internal::Matched(point, step);
  }
  return {};
}

// Says hello as what the environment says now. Called before main() by itself; a forked process
// that is to be one of the run calls it before it passes a point. REQUIRES: not connected.
void Hello();

// The lane of the calling thread; main unless said.
void SetLane(Lane lane);

// Called once the process group exists: the rank that was really passed to it.
void Joined(int rank, int world_size);

// End of a step: its number and the time.
void StepEnded(uint32_t step);
// Counters of the default process group's collectives.
void CollectiveEntered();
void CollectiveEnqueued();
void Committed(uint64_t checkpoint_step);
void CheckpointFailed(uint64_t checkpoint_step, int error);

// For the allocator of the (simulated) device, on the training thread: true when this allocation
// must be refused. Idle: one relaxed load. `in_use` is what is allocated before it.
inline bool RefuseAllocation(uint64_t bytes, uint64_t in_use) {
  return internal::memory_armed.load(std::memory_order_relaxed) &&
         internal::RefuseSlow(bytes, in_use);
}
// Ends the phase in which a kRefuseMemory arm counts ("the third allocation of the forward").
void EndMemoryPhase();

}  // namespace shakedown::probe
