// Steady progress before the first fault, weights that change, sane clocks: without these nothing
// that comes later proves anything.
#include <algorithm>
#include <bit>
#include <cmath>

#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo assumptions;
namespace {

constexpr std::string_view kName = "assumptions";
constexpr Need kNeeds[] = {Need::kPlan,  Need::kJob,  Need::kObserved,
                           Need::kPages, Need::kLoad, Need::kLedgers};

// Steps on all ranks before the fault: enough for a median, few enough for an early fault.
constexpr int64_t kLeastSteps = 5;
// A step may take this much longer than the median. Generous, since ranks share CPUs; a job that
// hung or was restarted before the fault is far beyond.
constexpr double kUnsteadyFactor = 10;
constexpr Nanoseconds kUnsteadySlack = std::chrono::milliseconds(500);
// The page says that a step is over at most so long before the ledger does.
constexpr Nanoseconds kClockSlack = std::chrono::milliseconds(250);

struct Rows {
  const ProcessEvidence* process;
  std::vector<const LedgerStep*> before;  // rows of attempt 0 before the first fault
};

// What the plan lets one expect: a fault at step 3 leaves one or two steps before it.
int64_t LeastStepsBefore(const CheckInput& in) {
  int64_t least = std::min<int64_t>(kLeastSteps, in.job().steps);
  for (const Injection& injection : in.plan().injections) {
    if (injection.attempt != 0) continue;
    int64_t steps = injection.step - 1;
    if (injection.worker) {
      // A worker's step is its batch: workers share the micro-batches and run ahead of the rank.
      steps = (injection.step - 1 - int64_t{1} * in.job().prefetch * in.job().workers) /
              std::max(1, in.job().accumulation);
    }
    // Peers may still be at the end of the step before.
    least = std::min(least, std::max<int64_t>(0, steps - 1));
  }
  return least;
}

std::optional<Finding> BadRow(const Rows& rows) {
  const LedgerStep* previous = nullptr;
  for (const LedgerStep* row : rows.before) {
    const auto here = [&] { return std::vector<Where>{LedgerRow(*rows.process, row->step)}; };
    const std::string at = RankName(rows.process->rank) + ", step " + std::to_string(row->step);
    if (!std::isfinite(std::bit_cast<double>(row->loss_bits)) ||
        !std::isfinite(std::bit_cast<double>(row->grad_norm_bits))) {
      return NotKept(kName, at + ": loss or gradient norm is not finite before any fault", here());
    }
    if (row->state.weights.bytes == 0) {
      return NotKept(kName, at + ": the weights' digest is over no bytes", here());
    }
    if (previous != nullptr && row->t_ns <= previous->t_ns) {
      return NotKept(kName, at + ": the clock did not move since the step before", here());
    }
    if (previous != nullptr && row->state.weights == previous->state.weights) {
      return NotKept(kName, at + ": the weights did not change since the step before", here());
    }
    previous = row;
  }
  return std::nullopt;
}

std::optional<Finding> Unsteady(const CheckInput& in, const Rows& rows) {
  std::vector<int64_t> intervals;
  // The first interval holds what is done once (buckets are rebuilt after the first step).
  for (size_t i = 2; i < rows.before.size(); ++i) {
    intervals.push_back(rows.before[i]->t_ns - rows.before[i - 1]->t_ns);
  }
  if (intervals.size() < 3) return std::nullopt;
  const int64_t longest = *std::max_element(intervals.begin(), intervals.end());
  std::nth_element(intervals.begin(), intervals.begin() + std::ssize(intervals) / 2,
                   intervals.end());
  const int64_t median = intervals[intervals.size() / 2];
  const double limit = std::max(static_cast<double>(median) * kUnsteadyFactor,
                                static_cast<double>(median + kUnsteadySlack.count()));
  if (static_cast<double>(longest) <= limit || in.load.overloaded) return std::nullopt;
  return NotKept(kName, RankName(rows.process->rank) +
                            " was not steady before any fault: a step of " +
                            Ms(Nanoseconds(longest)) + ", median " + Ms(Nanoseconds(median)));
}

// Ledger and page are written by the same rank, but the page's time is the controller's.
std::optional<Finding> ClocksDisagree(const RankTimeline& rank) {
  for (const StepMark& mark : rank.steps) {
    if (!mark.seen || !mark.ledger || *mark.seen >= *mark.ledger - kClockSlack) continue;
    return NotKept(kName, RankName(rank.rank) + " says that step " + std::to_string(mark.step) +
                              " ended " + Ms(*mark.ledger - *mark.seen) +
                              " after the controller saw that it had");
  }
  return std::nullopt;
}

bool HasPage(const CheckInput& in, int rank) {
  return std::any_of(in.observed.pages.begin(), in.observed.pages.end(), [&](const auto& page) {
    return page.rank == rank && page.attempt == 0 && !page.worker;
  });
}

Finding Check(const CheckInput& in) {
  const int64_t least = LeastStepsBefore(in);
  const AttemptEvidence* first = in.observed.attempt(0);
  if (first == nullptr) return NotKept(kName, "there was no attempt 0");
  int64_t compared = INT64_MAX;
  for (int r = 0; r < in.job().ranks; ++r) {
    const ProcessEvidence* process = first->rank(r);
    if (!HasPage(in, r)) return NotKept(kName, RankName(r) + " was never seen by its page");
    if (process == nullptr || !process->ledger) {
      if (least == 0) continue;
      return NotKept(kName, RankName(r) + " left no ledger");
    }
    Rows rows{process, {}};
    for (const LedgerStep& row : process->ledger->steps) {
      if (!in.timeline.zero || row.t_ns < in.timeline.zero->ns) rows.before.push_back(&row);
    }
    const auto steps = static_cast<int64_t>(rows.before.size());
    compared = std::min(compared, steps);
    if (steps < least) {
      return NotKept(kName, RankName(r) + " had completed " + std::to_string(steps) +
                                " steps before the first fault, at least " + std::to_string(least) +
                                " are needed");
    }
    if (auto bad = BadRow(rows)) return *bad;
    if (auto bad = Unsteady(in, rows)) return *bad;
  }
  for (const AttemptTimeline& attempt : in.timeline.attempts) {
    for (const RankTimeline& rank : attempt.ranks) {
      if (auto bad = ClocksDisagree(rank)) return *bad;
    }
  }
  Finding finding =
      Pass(in.load.overloaded ? "steady, but the machine was overloaded: " + in.load.why
                              : "steady progress before the first fault",
           compared == INT64_MAX ? 0 : compared, least);
  finding.expected = least;
  finding.observed = finding.compared;
  finding.unit = "steps before the first fault, on each rank";
  return finding;
}

}  // namespace

const CheckInfo assumptions = {
    .name = kName,
    .promise =
        "Before the first fault the job makes steady progress, its weights change, losses "
        "are finite and clocks agree.",
    .check_class = CheckClass::kAssumption,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
