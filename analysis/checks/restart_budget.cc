// Restarts are counted over all ranks together, end when used up, and start afresh.
#include <algorithm>
#include <set>

#include "analysis/checks/common.h"
#include "harness/wire/log_events.h"

namespace shakedown::checks {
extern const CheckInfo restart_budget;
namespace {

namespace e = log_events;

constexpr std::string_view kName = "restart_budget";
constexpr Need kNeeds[] = {Need::kPlan, Need::kJob, Need::kObserved, Need::kLauncherLog};
constexpr CheckParameter kParameters[] = {
    {"expect.restarts", "exactly so many restarts",
     "none for unaffected and degrades; for recovers one more than the last attempt with a fault"}};

std::optional<int64_t> ExpectedRestarts(const CheckInput& in) {
  if (in.expect().restarts) return in.expect().restarts;
  switch (in.expect().outcome) {
    case Outcome::kUnaffected:
    case Outcome::kDegrades:
      return 0;
    case Outcome::kRecovers: {
      int64_t last = 0;
      for (const Injection& i : in.plan().injections) last = std::max<int64_t>(last, i.attempt);
      return last + 1;
    }
    case Outcome::kStopsCleanly:
      return std::nullopt;
  }
  return std::nullopt;
}

// Attempts in which processes of the job said hello: executions, whatever anybody counts.
int64_t Executions(const CheckInput& in) {
  std::set<int64_t> seen;
  for (const Event* event : in.observed.Named(events::kProcessHello)) {
    if (const auto attempt = IntField(event->fields, "attempt")) seen.insert(*attempt);
  }
  return std::ssize(seen);
}

std::optional<Finding> NotFresh(const CheckInput& in) {
  std::set<std::string> stores;
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    const std::string name = "attempt " + std::to_string(attempt.attempt);
    const LogLine* line = FindLine(attempt, std::nullopt, e::kAttemptStarted, "INFO");
    if (line == nullptr) return Broke(kName, "the launcher did not log the start of " + name);
    const auto store = StringField(line->fields, "store");
    if (!store || store->empty()) {
      return Broke(kName, "the launcher does not name the store of " + name, {line->where});
    }
    if (!stores.insert(*store).second) {
      return Broke(kName, name + " used the store of an earlier attempt", {line->where});
    }
    const auto left = IntField(line->fields, "restarts_left");
    if (left != in.job().max_restarts - attempt.attempt) {
      return Broke(kName,
                   name + " began with " +
                       (left ? std::to_string(*left) : std::string("an unknown number of")) +
                       " restarts left, " +
                       std::to_string(in.job().max_restarts - attempt.attempt) + " are right",
                   {line->where});
    }
  }
  return std::nullopt;
}

Finding Check(const CheckInput& in) {
  if (in.observed.attempts.empty()) return Unclear("there is no attempt");
  const int64_t attempts = std::ssize(in.observed.attempts);
  const int64_t restarts = attempts - 1;
  const int64_t allowed =
      in.job().restart_policy == RestartPolicy::kNone ? 0 : in.job().max_restarts;
  if (in.job().restart_policy != RestartPolicy::kNone) {
    if (auto bad = NotFresh(in)) return *bad;
  }
  if (const int64_t executions = Executions(in); executions != attempts) {
    return Broke(kName, "processes of " + std::to_string(executions) +
                            " attempts were seen, the launcher logged " + std::to_string(attempts));
  }
  Finding finding;
  const auto expected = ExpectedRestarts(in);
  if (restarts > allowed) {
    finding = Broke(kName, "the job restarted " + std::to_string(restarts) +
                               " times, allowed are " + std::to_string(allowed));
    finding.expected = allowed;
  } else if (expected && restarts != *expected) {
    finding = Broke(kName, "the job restarted " + std::to_string(restarts) +
                               " times, expected are " + std::to_string(*expected));
    finding.expected = *expected;
  } else {
    finding = Pass("restarted " + std::to_string(restarts) + " times, each with a fresh store",
                   attempts, 1);
    finding.expected = expected ? *expected : allowed;
  }
  finding.observed = restarts;
  finding.unit = "restarts";
  return finding;
}

}  // namespace

const CheckInfo restart_budget = {
    .name = kName,
    .promise =
        "Restarts are counted over all ranks together, end when they are used up, and begin "
        "with a fresh store each.",
    .check_class = CheckClass::kRecovery,
    .evidence = kNeeds,
    .parameters = kParameters,
    .by_time = false,
    .depends_on_fault = true,
    .function = Check};

}  // namespace shakedown::checks
