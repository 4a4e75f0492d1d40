// Time to the first new step, lost steps, and speed back to normal.
#include <algorithm>

#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo recovered_in_budget;
namespace {

constexpr std::string_view kName = "recovered_in_budget";
constexpr Need kNeeds[] = {Need::kPlan,     Need::kJob,   Need::kInjected,
                           Need::kObserved, Need::kPages, Need::kLedgers};
constexpr CheckParameter kParameters[] = {
    {"expect.budget.recovery", "from the injection to the first new step on all ranks",
     "not judged by time, but there must be a new step"},
    {"expect.budget.lost_steps", "steps that had been completed and are done again",
     "not more than lie between two checkpoints, and one more interval for a save on its way"}};

// The controller samples pages every few milliseconds; when the rank's own word lies further away,
// one of the two is wrong.
constexpr Nanoseconds kAgree = std::chrono::seconds(1);
// After recovery a step may take this much longer than before the fault.
constexpr double kSlower = 3;
constexpr Nanoseconds kSlowerSlack = std::chrono::milliseconds(20);
constexpr size_t kLeastIntervals = 5;

using Bad = std::optional<Finding>;

Finding OverBudget(const std::string& what, double expected, double observed, const char* unit) {
  Finding finding = Broke(kName, what);
  finding.expected = expected;
  finding.observed = observed;
  finding.unit = unit;
  return finding;
}

Bad LostTooMuch(const CheckInput& in, const Recovery& recovery) {
  if (!recovery.lost_steps) return Unclear("the ledgers do not tell from where the job resumed");
  const int64_t budget = in.expect().lost_steps_budget.value_or(2 * in.job().checkpoint.every);
  if (!in.expect().lost_steps_budget && in.job().checkpoint.every == 0) return std::nullopt;
  if (*recovery.lost_steps <= budget) return std::nullopt;
  return OverBudget(
      "attempt " + std::to_string(recovery.attempt) + " lost " +
          std::to_string(*recovery.lost_steps) + " steps, budget " + std::to_string(budget),
      static_cast<double>(budget), static_cast<double>(*recovery.lost_steps), "steps");
}

Bad TooLate(const CheckInput& in, const Recovery& recovery) {
  // Nothing new is left to do when the last step was done already.
  if (recovery.reached >= in.job().steps) return std::nullopt;
  if (!recovery.new_step_seen) {
    return Broke(kName, "after step " + std::to_string(recovery.reached) +
                            " the ranks never completed another");
  }
  if (!recovery.new_step_ledger) return Unclear("no ledger confirms the first new step");
  const Nanoseconds apart = *recovery.new_step_seen - *recovery.new_step_ledger;
  if (apart > kAgree || apart < -kAgree) {
    return Unclear("the first new step was seen " + Ms(apart) + " after the ranks say it ended");
  }
  const auto took = recovery.ToNewStep();
  if (!took) return Unclear("no injection came before attempt " + std::to_string(recovery.attempt));
  const auto& budget = in.expect().recovery_budget;
  if (!budget || *took <= *budget) return std::nullopt;
  return OverBudget(
      "the first new step came " + Ms(*took) + " after the injection, budget " + Ms(*budget),
      ToMs(*budget), ToMs(*took), "ms");
}

std::optional<Nanoseconds> MedianStep(const RankTimeline& rank,
                                      const std::function<bool(MonoTime)>& wanted) {
  std::vector<int64_t> intervals;
  for (size_t i = 2; i < rank.steps.size(); ++i) {
    const auto& from = rank.steps[i - 1];
    const auto& to = rank.steps[i];
    if (to.ledger && from.ledger && to.step == from.step + 1 && wanted(*from.ledger)) {
      intervals.push_back((*to.ledger - *from.ledger).count());
    }
  }
  if (intervals.size() < kLeastIntervals) return std::nullopt;
  const auto middle = intervals.begin() + std::ssize(intervals) / 2;
  std::nth_element(intervals.begin(), middle, intervals.end());
  return Nanoseconds(*middle);
}

Bad SlowerThanBefore(const CheckInput& in) {
  const AttemptTimeline* last = in.timeline.last();
  if (last == nullptr || !in.timeline.zero || !in.timeline.fault_end) return std::nullopt;
  for (const RankTimeline& rank : last->ranks) {
    const RankTimeline& first = in.timeline.attempts.front().ranks[static_cast<size_t>(rank.rank)];
    const auto before = MedianStep(first, [&](MonoTime t) { return t < *in.timeline.zero; });
    const auto after = MedianStep(rank, [&](MonoTime t) { return t > *in.timeline.fault_end; });
    if (!before || !after) continue;
    const double limit = std::max(static_cast<double>(before->count()) * kSlower,
                                  static_cast<double>((*before + kSlowerSlack).count()));
    if (static_cast<double>(after->count()) > limit) {
      return OverBudget(RankName(rank.rank) + " needs " + Ms(*after) + " for a step, " +
                            Ms(*before) + " before the fault",
                        limit / 1e6, ToMs(*after), "ms");
    }
  }
  return std::nullopt;
}

Finding Check(const CheckInput& in) {
  if (in.no_fault()) return NotApplicable("nothing was injected");
  if (in.expect().outcome == Outcome::kStopsCleanly) return NotApplicable("the job is to stop");
  if (in.timeline.recoveries.empty()) return Unclear("the time of the injection is not known");
  std::optional<Nanoseconds> slowest;
  for (const Recovery& recovery : in.timeline.recoveries) {
    if (auto bad = LostTooMuch(in, recovery)) return *bad;
    if (auto bad = TooLate(in, recovery)) return *bad;
    if (const auto took = recovery.ToNewStep()) slowest = std::max(slowest.value_or(*took), *took);
  }
  if (auto bad = SlowerThanBefore(in)) return *bad;
  const auto count = static_cast<int64_t>(in.timeline.recoveries.size());
  Finding finding =
      Pass(slowest ? "the first new step came after " + Ms(*slowest) : "no step was left to do",
           count, count);
  if (slowest) finding.observed = ToMs(*slowest);
  if (in.expect().recovery_budget) finding.expected = ToMs(*in.expect().recovery_budget);
  finding.unit = "ms";
  return finding;
}

}  // namespace

const CheckInfo recovered_in_budget = {
    .name = kName,
    .promise =
        "The job gets back to new steps within its budgets of time and lost steps, and back "
        "to its speed.",
    .check_class = CheckClass::kRecovery,
    .evidence = kNeeds,
    .parameters = kParameters,
    .by_time = true,
    .depends_on_fault = true,
    .function = Check};

}  // namespace shakedown::checks
