#include "harness/plan/make_plan.h"

#include <algorithm>

#include "harness/base/random.h"
#include "injectors/catalog.h"
#include "injectors/injector.h"

namespace shakedown {
namespace {

// `id` is that of the first injection made from the fault: adding a fault to a scenario does not
// move the draws of those before it.
std::vector<int> ChooseRanks(const Target& target, int ranks, uint64_t seed, int id) {
  switch (target.kind) {
    case Target::Kind::kList:
      return target.ranks;
    case Target::Kind::kLast:
      return {ranks - 1};
    case Target::Kind::kAny: {
      Random random(seed, "injection/" + std::to_string(id));
      return {static_cast<int>(random.Below(static_cast<uint64_t>(ranks)))};
    }
    case Target::Kind::kAll:
      break;
  }
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  return all;
}

Injection MakeInjection(const FaultSpec& spec, const Availability& means, int id, int rank) {
  Injection injection;
  injection.id = id;
  injection.fault = spec.inject;
  injection.with = spec.with;
  injection.rank = rank;
  injection.worker = spec.target.worker;
  injection.attempt = spec.attempt;
  injection.step = spec.step;
  injection.point = spec.point;
  injection.occurrence = spec.occurrence;
  injection.committed = spec.committed;
  injection.duration = spec.duration;
  injection.until = spec.until;
  injection.hold = spec.hold;
  injection.level = ToString(means.level);
  injection.means = means.means;
  injection.better = means.better;
  return injection;
}

// A hold must not itself set off what the job has against hangs.
Nanoseconds HoldLimit(const Scenario& scenario) {
  const JobConfig& job = scenario.job;
  Nanoseconds shortest = job.collective_timeout;
  if (job.watchdog) shortest = std::min(shortest, *job.watchdog);
  for (const FaultSpec& fault : scenario.faults) {
    if (fault.target.worker) shortest = std::min(shortest, job.worker_deadline);
  }
  return std::min<Nanoseconds>(std::chrono::milliseconds(100), shortest / 10);
}

}  // namespace

Result<Plan> MakePlan(const Scenario& scenario, uint64_t seed, const Machine& machine) {
  Plan plan;
  plan.scenario = scenario;
  plan.seed = seed;
  plan.hold_limit = HoldLimit(scenario);
  for (const FaultSpec& spec : scenario.faults) {
    const Fault* const fault = FindFault(spec.inject);
    SHAKEDOWN_ASSERT(fault != nullptr);  // the parser has looked it up
    const Availability means = fault->available(machine);
    if (!means.available) {
      return Fail("cannot inject " + spec.inject + " on this machine: " + means.why_not);
    }
    const int first_id = static_cast<int>(plan.injections.size()) + 1;
    for (const int rank : ChooseRanks(spec.target, scenario.job.ranks, seed, first_id)) {
      const int id = static_cast<int>(plan.injections.size()) + 1;
      plan.injections.push_back(MakeInjection(spec, means, id, rank));
      const auto bytes = fault->make(plan.injections.back(), means)->PrivateFilesystemBytes();
      if (bytes) plan.private_fs_bytes = std::max(plan.private_fs_bytes.value_or(0), *bytes);
    }
  }
  plan.digest = PlanDigest(plan);
  return plan;
}

}  // namespace shakedown
