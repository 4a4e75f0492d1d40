#include "analysis/timeline/load.h"

#include <algorithm>
#include <cstdio>

namespace shakedown {
namespace {

// The controller sleeps nearly always and asks for little: when even its timer comes this late,
// times of the job say more about the machine than about the job. A quiet machine with twice as
// many ranks as CPUs stays below 20 ms.
constexpr double kSlipLimitMs = 100;
// Share of the CPUs' time that the hypervisor gave to others.
constexpr double kStealLimit = 0.2;
// Kernel ticks are 1/100 s in /proc/stat, whatever the kernel's own rate (proc(5), USER_HZ).
constexpr double kTicksPerSecond = 100;

std::string Describe(const char* what, double measured, double limit, const char* unit) {
  char text[128];
  std::snprintf(text, sizeof text, "%s %.0f %s, limit %.0f %s", what, measured, unit, limit, unit);
  return text;
}

}  // namespace

// Pressure is recorded and not judged: a job with more ranks than CPUs has a pressure near 100 % on
// a machine that does nothing else.
LoadReport MeasureLoad(const ObservedEvidence& observed) {
  LoadReport report;
  double slip = 0;
  const Event* first = nullptr;
  const Event* last = nullptr;
  for (const Event* event : observed.Named(events::kLoadSampled)) {
    ++report.samples;
    slip = std::max(slip, NumberField(event->fields, "slip_ms").value_or(0));
    if (first == nullptr) first = event;
    last = event;
  }
  if (slip > kSlipLimitMs) {
    report.overloaded = true;
    report.why = Describe("the controller's timer came late by", slip, kSlipLimitMs, "ms");
    return report;
  }
  if (first == last) return report;
  const auto from = IntField(first->fields, "steal_ticks");
  const auto to = IntField(last->fields, "steal_ticks");
  const double seconds = ToMs(last->t - first->t) / 1000;
  const double cpus = static_cast<double>(IntField(last->fields, "cpus").value_or(1));
  if (!from || !to || seconds <= 0 || cpus <= 0) return report;
  const double share = static_cast<double>(*to - *from) / kTicksPerSecond / (seconds * cpus);
  if (share > kStealLimit) {
    report.overloaded = true;
    report.why = Describe("CPU time taken by other machines", share * 100, kStealLimit * 100, "%");
  }
  return report;
}

}  // namespace shakedown
