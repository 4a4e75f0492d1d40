// The limit that fired is the one that was configured, and it fired when it says.
#include <algorithm>
#include <cmath>

#include "analysis/checks/common.h"
#include "analysis/timeline/reactions.h"
#include "harness/wire/log_events.h"

namespace shakedown::checks {
extern const CheckInfo timeout_effective;
namespace {

constexpr std::string_view kName = "timeout_effective";
constexpr Need kNeeds[] = {Need::kPlan,     Need::kJob,      Need::kInjected,
                           Need::kObserved, Need::kRankLogs, Need::kLauncherLog};
constexpr CheckParameter kParameters[] = {
    {"expect.timeout.fires", "which limit must fire: collective, watchdog or worker_deadline",
     "not applicable"}};

// Peers may have waited a little before the injection; and whoever waits for a limit looks at it
// only now and then.
constexpr double kEarliest = 0.9;
constexpr Nanoseconds kLatest = std::chrono::seconds(1);
// Lines of two files that were written within this time may arrive in either order.
constexpr Nanoseconds kOrderSlack = std::chrono::milliseconds(100);

struct WindowOfLimit {
  Nanoseconds from, to;
};
WindowOfLimit WindowFor(Nanoseconds limit) {
  return {std::chrono::duration_cast<Nanoseconds>(limit * kEarliest), limit + kLatest};
}
bool Overlap(const WindowOfLimit& a, const WindowOfLimit& b) {
  return a.from <= b.to && b.from <= a.to;
}

struct Configured {
  std::string_view name;
  std::optional<Nanoseconds> limit;
};

std::vector<Configured> LimitsOf(const JobConfig& job) {
  return {{"collective", job.collective_timeout},
          {"watchdog", job.watchdog},
          {"worker_deadline", job.worker_deadline}};
}

// The other limits that could have fired instead. A worker's deadline runs only while a rank waits
// for data, so it is no rival of the two that a hang reaches.
std::optional<std::string> CannotBeToldApart(const JobConfig& job, std::string_view name,
                                             Nanoseconds limit) {
  for (const Configured& other : LimitsOf(job)) {
    if (other.name == name || other.name == "worker_deadline" || !other.limit) continue;
    if (Overlap(WindowFor(limit), WindowFor(*other.limit))) {
      return "the limits of " + std::string(name) + " (" + Ms(limit) + ") and " +
             std::string(other.name) + " (" + Ms(*other.limit) +
             ") are too near to tell which one fired";
    }
  }
  return std::nullopt;
}

std::optional<Finding> AnotherFired(const CheckInput& in, std::string_view expected,
                                    MonoTime zero) {
  for (const Configured& other : LimitsOf(in.job())) {
    if (other.name == expected) continue;
    if (const LogLine* line = FirstLimitLine(in.observed, *FindLimit(other.name), zero)) {
      return Broke(kName,
                   "the limit of " + std::string(other.name) + " fired (" + WriterOf(*line) +
                       " logged " + line->event + "), not that of " + std::string(expected),
                   {line->where});
    }
  }
  return std::nullopt;
}

// An error before it means that something else was noticed first.
std::optional<Finding> NotTheFirst(const CheckInput& in, const LogLine& fired, MonoTime zero) {
  for (const LogLine* line : in.observed.AllLines()) {
    if (line->level != "ERROR" || line->when() < zero || line->event == fired.event) continue;
    const bool by_job = line->t < fired.t && fired.t.ns != 0 && line->t.ns != 0;
    const bool by_arrival = line->when() + kOrderSlack < fired.when();
    if (by_job || by_arrival) {
      return Broke(kName, WriterOf(*line) + " logged " + line->event + " before the limit fired",
                   {line->where, fired.where});
    }
  }
  return std::nullopt;
}

// How long a rank stood still before this line, by its page: the controller's own measure of how
// long it waited for its data.
std::optional<Nanoseconds> StoodStill(const CheckInput& in, const LogLine& line) {
  if (!line.writer || !line.arrived) return std::nullopt;
  const PageSample* since = nullptr;
  for (const PageSample& page : in.observed.pages) {
    if (page.attempt != line.attempt || page.rank != *line.writer || page.worker) continue;
    if (page.t > *line.arrived) break;
    const LaneSample* now = page.lane("main");
    const LaneSample* then = since == nullptr ? nullptr : since->lane("main");
    const bool same = now != nullptr && then != nullptr && now->count == then->count &&
                      now->point == then->point && now->step == then->step;
    if (!same) since = &page;
  }
  if (since == nullptr) return std::nullopt;
  return *line.arrived - since->t;
}

Finding Check(const CheckInput& in) {
  if (!in.expect().timeout_fires)
    return NotApplicable("the scenario names no limit that must fire");
  const std::string& name = *in.expect().timeout_fires;
  const LimitInfo* info = FindLimit(name);
  if (info == nullptr) return Unclear("'" + name + "' is no limit that is known here");
  if (!in.timeline.zero) return Unclear("the time of the injection is not known");
  const MonoTime zero = *in.timeline.zero;
  std::optional<Nanoseconds> limit;
  for (const Configured& c : LimitsOf(in.job())) {
    if (c.name == name) limit = c.limit;
  }
  if (!limit) return Broke(kName, "the limit of " + name + " is not configured");
  if (const auto unclear = CannotBeToldApart(in.job(), name, *limit)) return Unclear(*unclear);

  const LogLine* fired = FirstLimitLine(in.observed, *info, zero);
  if (auto other = AnotherFired(in, name, zero)) return *other;
  if (fired == nullptr) {
    return Broke(
        kName, "no log says " + std::string(info->event) + " at level " + std::string(info->level));
  }
  const auto stated = NumberField(fired->fields, info->limit_field);
  if (!stated || std::abs(*stated - ToMs(*limit)) > 1) {
    return Broke(
        kName,
        std::string(info->event) + " states a limit of " +
            (stated ? std::to_string(std::llround(*stated)) + " ms" : std::string("nothing")) +
            ", configured are " + Ms(*limit),
        {fired->where});
  }
  if (name != "worker_deadline") {
    if (auto early = NotTheFirst(in, *fired, zero)) return *early;
  }
  if (!fired->arrived) {
    return Unclear("the controller did not see the line arrive", {fired->where});
  }
  // A worker's deadline begins when its rank begins to wait, which is after the prefetched batches.
  const auto waited =
      name == "worker_deadline" ? StoodStill(in, *fired) : std::optional(*fired->arrived - zero);
  if (!waited) return Unclear("no page shows since when the rank waited", {fired->where});
  const WindowOfLimit window = WindowFor(*limit);
  Finding finding;
  if (*waited < window.from || *waited > window.to) {
    finding = Broke(
        kName, "the limit of " + name + " is " + Ms(*limit) + " and fired after " + Ms(*waited),
        {fired->where});
  } else {
    finding = Pass("the limit of " + name + " fired after " + Ms(*waited), 1, 1);
    finding.where = {fired->where};
  }
  finding.expected = ToMs(*limit);
  finding.observed = ToMs(*waited);
  finding.unit = "ms";
  return finding;
}

}  // namespace

const CheckInfo timeout_effective = {
    .name = kName,
    .promise = "The timeout that fired is the one that was configured, and it fired in time.",
    .check_class = CheckClass::kReaction,
    .evidence = kNeeds,
    .parameters = kParameters,
    .by_time = true,
    .depends_on_fault = true,
    .function = Check};

}  // namespace shakedown::checks
