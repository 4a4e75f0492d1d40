// The progress page: 4 KiB of shared memory per rank or data worker, readable by the controller
// when the process is stopped, deadlocked or dead. The controller makes it as a memfd sealed
// against shrinking and growing; the process maps it at the probe's hello.
//
// The first half is OBSERVED: what an operator with the same probe could see. It is saved as
// page.bin. The second half is CONTROL: what the plan has armed. It is secret from diagnosis and is
// never saved. The controller treats all contents as untrusted: the process may write anything.
//
// Every field of the observed half is one relaxed atomic: a live reader may see fields of two
// different instants, so whatever must be consistent is packed into one 64-bit word.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "harness/wire/points.h"

namespace shakedown {

inline constexpr uint32_t kPageMagic = 0x534B5047;  // "SKPG"
inline constexpr uint32_t kPageVersion = 1;
inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kPageObservedBytes = 2048;

enum class Lane : uint8_t { kMain = 0, kAutograd = 1, kWriter = 2 };
inline constexpr size_t kLanes = 3;

// Where a lane is. From the high bits: attempt 8, point 8, step 24, count 24. `count` counts the
// passes of this lane through any point, so that two equal words mean that nothing was passed.
struct Progress {
  uint8_t attempt = 0;
  Point point = Point::kNone;
  uint32_t step = 0;
  uint32_t count = 0;
};
inline constexpr uint64_t kCountMask = 0xFFFFFF;
constexpr uint64_t Pack(const Progress& p) {
  return (uint64_t{p.attempt} << 56) | (static_cast<uint64_t>(p.point) << 48) |
         (uint64_t{p.step & 0xFFFFFF} << 24) | (p.count & 0xFFFFFF);
}
constexpr Progress Unpack(uint64_t word) {
  return {static_cast<uint8_t>(word >> 56), static_cast<Point>(word >> 48 & 0xFF),
          static_cast<uint32_t>(word >> 24 & 0xFFFFFF), static_cast<uint32_t>(word & 0xFFFFFF)};
}

enum class Role : uint8_t { kRank = 0, kWorker = 1 };

struct alignas(64) PageObserved {
  uint32_t magic;
  uint32_t version;
  std::atomic<int32_t> rank;        // -1 until the process joins a process group
  std::atomic<int32_t> world_size;  // 0 until then
  std::atomic<int32_t> pid;
  std::atomic<int32_t> worker;  // -1 for a rank
  std::atomic<uint64_t> lanes[kLanes];
  // End of the last complete step: its number, and CLOCK_MONOTONIC nanoseconds. One clock read a
  // step (a read at each point would cost 14 times as much).
  std::atomic<uint64_t> last_step;
  std::atomic<uint64_t> last_step_ns;
  // Collectives of the default process group since the group was made, counted from 1.
  std::atomic<uint64_t> collectives_entered;
  std::atomic<uint64_t> collectives_enqueued;
  std::atomic<uint64_t> committed_step;  // last checkpoint this process published
  // Last failed operation on a checkpoint: errno in the high 32 bits, checkpoint step in the low.
  std::atomic<uint64_t> checkpoint_error;
  // Device allocations that were refused, like CUDA's num_ooms: step of the last one in the high 32
  // bits, their number in the low.
  std::atomic<uint64_t> memory_refused;
};
static_assert(sizeof(PageObserved) <= kPageObservedBytes);

// What an arm does at a match.
enum class ArmAction : uint32_t {
  kNone = 0,          // only hold
  kStall = 1,         // never return from the point
  kDelay = 2,         // sleep `argument` nanoseconds
  kRefuseMemory = 3,  // refuse the `argument`-th allocation from here on (in this phase)
  kMemoryBudget = 4,  // refuse allocations that would bring the total over `argument` bytes
  kIoError = 5,       // answer the operation that follows with errno `argument`
  kExit = 6,          // _exit(argument)
};

enum ArmFlags : uint32_t {
  kArmHold = 1,    // report and wait for the controller before acting
  kArmRepeat = 2,  // acts again at each later match (step >= `step`), without a hold
};

enum class ArmState : uint32_t { kEmpty = 0, kArmed = 1, kTaken = 2, kRepeating = 3, kDone = 4 };

// A match is: same point, `step` equal (or, with kArmRepeat, not smaller), and the `occurrence`-th
// such pass. `seen` counts passes; the process takes the arm by compare-and-swap on `state`, so it
// acts once however many threads pass.
struct Arm {
  std::atomic<uint32_t> state;  // ArmState
  uint32_t id;                  // the injection's number in the plan; 0 for a decoy
  uint32_t point;
  uint32_t flags;
  uint32_t step;
  uint32_t occurrence;
  std::atomic<uint32_t> seen;
  ArmAction action;
  int64_t argument;
};
inline constexpr size_t kArms = 16;

struct alignas(64) PageControl {
  std::atomic<uint64_t> armed;  // bit (1 << point) is set when an arm may match there
  Arm arms[kArms];
};
static_assert(sizeof(PageControl) <= kPageBytes - kPageObservedBytes);

struct ProgressPage {
  PageObserved observed;
  alignas(kPageObservedBytes) PageControl control;
};
static_assert(offsetof(ProgressPage, control) == kPageObservedBytes);
static_assert(sizeof(ProgressPage) == kPageBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace shakedown
