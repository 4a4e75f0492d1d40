// Faults that run inside the process: stall, delay, refused memory, exit.
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "injectors/probe/internal.h"

// Its name is how stacks are read without our own frames. Signals are left as the job has them: a
// rank that hangs still dies of SIGTERM or runs its handler, and comes back to the hang.
extern "C" [[noreturn]] __attribute__((noinline)) void shakedown_probe_stall() {
  for (;;) ::pause();
}

// The whole time, whatever signals arrive.
extern "C" __attribute__((noinline)) void shakedown_probe_delay(int64_t ns) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += ns / 1'000'000'000;
  until.tv_nsec += ns % 1'000'000'000;
  if (until.tv_nsec >= 1'000'000'000) {
    until.tv_nsec -= 1'000'000'000;
    ++until.tv_sec;
  }
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

namespace shakedown::probe {
namespace internal {
namespace {

// Of the thread that passed the point: "the third allocation of the forward" means its own, not
// that of a loader or writer thread which happens to allocate meanwhile.
struct MemoryFault {
  ArmAction action = ArmAction::kNone;
  int64_t argument = 0;  // allocations left until the refused one, or the budget in bytes
  uint32_t step = 0;
};
constinit thread_local MemoryFault memory_fault;

void ArmMemory(ArmAction action, int64_t argument, uint32_t step) {
  memory_fault = {action, argument, step};
  memory_armed.store(true, std::memory_order_relaxed);
}

bool MustRefuse(uint64_t bytes, uint64_t in_use) {
  switch (memory_fault.action) {
    case ArmAction::kRefuseMemory:
      return --memory_fault.argument == 0;
    case ArmAction::kMemoryBudget: {
      const auto budget = static_cast<uint64_t>(memory_fault.argument);
      return in_use > budget || bytes > budget - in_use;
    }
    default:
      return false;
  }
}

// Step in the high half, number of refusals in the low one.
void CountRefusal(uint32_t step) {
  std::atomic<uint64_t>& word = page->observed.memory_refused;
  const uint64_t count = (word.load(std::memory_order_relaxed) + 1) & 0xFFFFFFFF;
  word.store(uint64_t{step} << 32 | count, std::memory_order_relaxed);
}

}  // namespace

constinit std::atomic<bool> memory_armed{false};

void DropMemoryFault() {
  memory_fault = {};
  memory_armed.store(false, std::memory_order_relaxed);
}

bool RefuseSlow(uint64_t bytes, uint64_t in_use) {
  if (!MustRefuse(bytes, in_use)) return false;
  CountRefusal(memory_fault.step);
  DropMemoryFault();  // acts once, so that a job which retries can succeed
  return true;
}

Verdict Act(ArmAction action, int64_t argument, uint32_t step) {
  switch (action) {
    case ArmAction::kNone:
      return {};
    case ArmAction::kStall:
      shakedown_probe_stall();
    case ArmAction::kDelay:
      shakedown_probe_delay(argument);
      return {};
    case ArmAction::kRefuseMemory:
    case ArmAction::kMemoryBudget:
      ArmMemory(action, argument, step);
      return {};
    case ArmAction::kIoError:
      return {action, argument};
    case ArmAction::kExit:
      ::_exit(static_cast<int>(argument));
  }
  return {};
}

}  // namespace internal

void EndMemoryPhase() {
  if (internal::memory_fault.action != ArmAction::kNone) internal::DropMemoryFault();
}

}  // namespace shakedown::probe
