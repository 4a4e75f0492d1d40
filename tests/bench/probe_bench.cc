// What the probe costs a process that nobody has armed. The project's limits: an unarmed point 2
// ns, the page 40 ns a step (14 points, and its end with one reading of the clock).
//   probe_bench [--benchmark_filter=...]
// Points stand far apart in a job, so their cost is what they add to work around them: each
// iteration times the same work with and without, on the thread's CPU clock, and reports the
// difference. The BackToBack figures, where each pass waits for the last one's store, are the upper
// bound.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>

#include "injectors/probe/probe.h"

namespace shakedown::probe {
namespace {

constexpr Point kStepPoints[] = {Point::kDataNext,
                                 Point::kStepBegin,
                                 Point::kForwardBegin,
                                 Point::kBackwardBegin,
                                 Point::kCollectiveEnter,
                                 Point::kCollectiveEnqueued,
                                 Point::kCollectiveExit,
                                 Point::kCollectiveEnter,
                                 Point::kCollectiveEnqueued,
                                 Point::kCollectiveExit,
                                 Point::kOptimizerBegin,
                                 Point::kCheckpointBegin,
                                 Point::kCheckpointSerialize,
                                 Point::kStepEnd};
static_assert(sizeof kStepPoints / sizeof *kStepPoints == 14);

// Some 20 ns of a dependent chain: little, against the milliseconds between two points of a job.
inline void Work() {
  static uint64_t value = 1;
  uint64_t v = value;
  for (int i = 0; i < 16; ++i) benchmark::DoNotOptimize(v *= 0x9E3779B97F4A7C15ULL);
  value = v;
}

double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename Body>
double SecondsFor(int repeats, Body body) {
  const double begin = CpuSeconds();
  for (int i = 0; i < repeats; ++i) body(static_cast<uint32_t>(i));
  return CpuSeconds() - begin;
}

template <typename With, typename Without>
void ReportDifference(benchmark::State& state, With with, Without without) {
  constexpr int kRepeats = 2000;
  for (auto _ : state) {
    const double base = SecondsFor(kRepeats, without);
    const double all = SecondsFor(kRepeats, with);
    state.SetIterationTime(std::max(all - base, 0.0) / kRepeats);
  }
}

void UnarmedPoint(benchmark::State& state) {
  ReportDifference(
      state,
      [](uint32_t step) {
        Work();
        Pass(Point::kCollectiveEnter, step);
      },
      [](uint32_t) { Work(); });
}
BENCHMARK(UnarmedPoint)->UseManualTime()->Iterations(2000);

void PageOfAStep(benchmark::State& state) {
  ReportDifference(
      state,
      [](uint32_t step) {
        for (const Point point : kStepPoints) {
          Work();
          Pass(point, step);
        }
        StepEnded(step);
      },
      [](uint32_t) {
        for (size_t i = 0; i < std::size(kStepPoints); ++i) Work();
      });
}
BENCHMARK(PageOfAStep)->UseManualTime()->Iterations(1000);

void UnarmedPointBackToBack(benchmark::State& state) {
  uint32_t step = 0;
  for (auto _ : state) Pass(Point::kCollectiveEnter, ++step);
}
BENCHMARK(UnarmedPointBackToBack);

void PageOfAStepBackToBack(benchmark::State& state) {
  uint32_t step = 0;
  for (auto _ : state) {
    ++step;
    for (const Point point : kStepPoints) Pass(point, step);
    StepEnded(step);
  }
}
BENCHMARK(PageOfAStepBackToBack);

// An arm waits for a later step at the point that is passed: every pass looks through the arms.
void PointWithAnArmOfALaterStep(benchmark::State& state) {
  PageControl& control = internal::page->control;
  Arm& arm = control.arms[0];
  arm.point = static_cast<uint32_t>(Point::kStepBegin);
  arm.step = 0xFFFFFFFF;
  arm.occurrence = 1;
  arm.state.store(static_cast<uint32_t>(ArmState::kArmed));
  control.armed.store(uint64_t{1} << static_cast<unsigned>(Point::kStepBegin));
  for (auto _ : state) Pass(Point::kStepBegin, 1);
  arm.state.store(static_cast<uint32_t>(ArmState::kEmpty));
  control.armed.store(0);
}
BENCHMARK(PointWithAnArmOfALaterStep);

void RefuseAllocationIdle(benchmark::State& state) {
  uint64_t in_use = 0;
  for (auto _ : state) benchmark::DoNotOptimize(RefuseAllocation(512, in_use += 512));
}
BENCHMARK(RefuseAllocationIdle);

}  // namespace
}  // namespace shakedown::probe

BENCHMARK_MAIN();
