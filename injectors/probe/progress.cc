// The page, what is written to it, and the arms that are looked for in it.
#include <pthread.h>

#include <ctime>

#include "injectors/probe/internal.h"

namespace shakedown::probe {
namespace internal {
namespace {

// The page of a process that has no controller, and of the child of a fork. In .bss and constant
// initialised, so that points may be passed before the constructor below has run, from the
// initialisers of other files.
constinit ProgressPage own_page{};

constexpr uint64_t Bit(Point point) { return uint64_t{1} << static_cast<unsigned>(point); }

bool CanMatchAgain(const Arm& arm, Point point) {
  const auto state = static_cast<ArmState>(arm.state.load());
  return (state == ArmState::kArmed || state == ArmState::kRepeating) &&
         arm.point == static_cast<uint32_t>(point);
}

bool AnyCanMatchAgain(const PageControl& control, Point point) {
  for (const Arm& arm : control.arms) {
    if (CanMatchAgain(arm, point)) return true;
  }
  return false;
}

// Lets later passes of `point` take the short way. The controller may arm at the same moment: it
// writes the arm first and the bit after it, so looking again after the bit was cleared finds that
// arm, or the controller's bit comes after the clearing. Sequentially consistent on both sides.
void ClearBitUnlessArmed(PageControl* control, Point point) {
  if (AnyCanMatchAgain(*control, point)) return;
  control->armed.fetch_and(~Bit(point));
  if (AnyCanMatchAgain(*control, point)) control->armed.fetch_or(Bit(point));
}

// Whether this pass is the one that the arm waits for. The number that fetch_add gives is this
// thread's alone, and the exchange fails when the controller has withdrawn the arm.
bool Take(Arm* arm, uint32_t step, uint32_t* occurrence) {
  const bool step_fits = (arm->flags & kArmRepeat) != 0 ? step >= arm->step : step == arm->step;
  if (!step_fits) return false;
  *occurrence = arm->seen.fetch_add(1) + 1;
  if (*occurrence != arm->occurrence) return false;
  auto expected = static_cast<uint32_t>(ArmState::kArmed);
  return arm->state.compare_exchange_strong(expected, static_cast<uint32_t>(ArmState::kTaken));
}

// The first match of an arm: hold or report, then act.
Verdict Fire(Arm* arm, const Match& match) {
  Answer answer = Answer::kAct;
  if ((arm->flags & kArmHold) != 0) {
    answer = Hold(match);
  } else {
    SendFired(match);
  }
  const bool repeats = answer == Answer::kAct && (arm->flags & kArmRepeat) != 0;
  // Before the action, since it may take long, or forever. An exchange, so that an arm which the
  // controller withdrew during the hold stays withdrawn.
  auto expected = static_cast<uint32_t>(ArmState::kTaken);
  arm->state.compare_exchange_strong(
      expected, static_cast<uint32_t>(repeats ? ArmState::kRepeating : ArmState::kDone));
  ClearBitUnlessArmed(&page->control, match.point);
  if (answer == Answer::kGoOn) return {};
  return Act(arm->action, arm->argument, match.step);
}

void WriteIdentity(PageObserved* observed) {
  observed->magic = kPageMagic;
  observed->version = kPageVersion;
}

void AfterForkInChild() {
  DropConnection(page == &own_page ? nullptr : page);
  DropMemoryFault();
  for (std::atomic<uint64_t>& word : own_page.observed.lanes) word.store(0);
  page = &own_page;
}

// Before main(): the arms of this process have to be in place before it passes its first point.
__attribute__((constructor)) void Start() {
  WriteIdentity(&own_page.observed);
  own_page.observed.rank.store(-1);
  own_page.observed.worker.store(-1);
  Hello();
  ::pthread_atfork(nullptr, nullptr, AfterForkInChild);
}

}  // namespace

constinit ProgressPage* page = &own_page;
constinit thread_local Lane lane = Lane::kMain;
constinit uint8_t attempt = 0;

int64_t MonotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Verdict Matched(Point point, uint32_t step) {
  Verdict verdict;
  PageControl& control = page->control;
  for (uint32_t i = 0; i < kArms; ++i) {
    Arm& arm = control.arms[i];
    // The controller writes the other fields before the state.
    const auto state = static_cast<ArmState>(arm.state.load());
    if (state != ArmState::kArmed && state != ArmState::kRepeating) continue;
    if (arm.point != static_cast<uint32_t>(point)) continue;
    Verdict one;
    uint32_t occurrence = 0;
    if (state == ArmState::kRepeating) {
      if (step >= arm.step) one = Act(arm.action, arm.argument, step);
    } else if (Take(&arm, step, &occurrence)) {
      one = Fire(&arm, {arm.id, i, point, step, occurrence, MonotonicNs()});
    }
    if (one) verdict = one;
  }
  ClearBitUnlessArmed(&control, point);
  return verdict;
}

}  // namespace internal

void Hello() {
  if (ProgressPage* shared = internal::SayHello(&internal::attempt)) internal::page = shared;
}

void SetLane(Lane lane) { internal::lane = lane; }

void Joined(int rank, int world_size) {
  PageObserved& observed = internal::page->observed;
  observed.world_size.store(world_size, std::memory_order_relaxed);
  observed.rank.store(rank, std::memory_order_relaxed);
  internal::SendJoined(rank, world_size);
}

void StepEnded(uint32_t step) {
  PageObserved& observed = internal::page->observed;
  observed.last_step_ns.store(static_cast<uint64_t>(internal::MonotonicNs()),
                              std::memory_order_relaxed);
  observed.last_step.store(step, std::memory_order_relaxed);
}

void CollectiveEntered() {
  internal::page->observed.collectives_entered.fetch_add(1, std::memory_order_relaxed);
}

void CollectiveEnqueued() {
  internal::page->observed.collectives_enqueued.fetch_add(1, std::memory_order_relaxed);
}

void Committed(uint64_t checkpoint_step) {
  internal::page->observed.committed_step.store(checkpoint_step, std::memory_order_relaxed);
}

void CheckpointFailed(uint64_t checkpoint_step, int error) {
  internal::page->observed.checkpoint_error.store(
      uint64_t{static_cast<uint32_t>(error)} << 32 | (checkpoint_step & 0xFFFFFFFF),
      std::memory_order_relaxed);
}

}  // namespace shakedown::probe
