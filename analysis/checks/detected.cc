// The job itself noticed, in time.
#include "analysis/checks/common.h"
#include "analysis/timeline/reactions.h"

namespace shakedown::checks {
extern const CheckInfo detected;
namespace {

constexpr std::string_view kName = "detected";
constexpr Need kNeeds[] = {Need::kPlan,  Need::kInjected, Need::kObserved,
                           Need::kExits, Need::kRankLogs, Need::kLauncherLog};
constexpr CheckParameter kParameters[] = {
    {"expect.detected.within", "from the injection until the job's own line or exit arrives",
     "a job that is to recover or to stop must notice at all; others need not"}};

Finding Check(const CheckInput& in) {
  if (in.no_fault()) return NotApplicable("nothing was injected");
  const auto& within = in.expect().detected_within;
  const Outcome outcome = in.expect().outcome;
  if (!within && (outcome == Outcome::kUnaffected || outcome == Outcome::kDegrades)) {
    return NotApplicable("the scenario states no time");
  }
  Nanoseconds slowest{0};
  int64_t compared = 0;
  std::vector<Where> where;
  for (const Injection& injection : in.plan().injections) {
    const InjectedRecord* injected = in.secret.Injected(injection.id);
    if (injected == nullptr || !injected->t0) return Unclear(injection.fault + " has no time");
    const auto reaction = JobReaction(in.observed, in.secret, *injected);
    if (!reaction) {
      return Broke(kName,
                   "the job never noticed " + injection.fault + " on " + RankName(injection.rank),
                   {injected->where});
    }
    const Nanoseconds took = reaction->at - *injected->t0;
    if (within && took > *within) {
      Finding finding = Broke(
          kName,
          reaction->what + " " + Ms(took) + " after " + injection.fault + ", budget " + Ms(*within),
          {reaction->where});
      finding.expected = ToMs(*within);
      finding.observed = ToMs(took);
      finding.unit = "ms";
      return finding;
    }
    slowest = std::max(slowest, took);
    where.push_back(reaction->where);
    ++compared;
  }
  Finding finding = Pass("noticed after " + Ms(slowest), compared,
                         static_cast<int64_t>(in.plan().injections.size()));
  if (within) finding.expected = ToMs(*within);
  finding.observed = ToMs(slowest);
  finding.unit = "ms";
  finding.where = std::move(where);
  return finding;
}

}  // namespace

const CheckInfo detected = {.name = kName,
                            .promise = "The job itself notices what goes wrong, within its budget.",
                            .check_class = CheckClass::kReaction,
                            .evidence = kNeeds,
                            .parameters = kParameters,
                            .by_time = true,
                            .depends_on_fault = true,
                            .function = Check};

}  // namespace shakedown::checks
