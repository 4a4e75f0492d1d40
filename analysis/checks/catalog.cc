#include "analysis/checks/catalog.h"

#include <algorithm>
#include <vector>

namespace shakedown {

namespace checks {
#define SHAKEDOWN_CHECK(name) extern const CheckInfo name;
#include "analysis/checks/catalog.def"
#undef SHAKEDOWN_CHECK
}  // namespace checks

std::span<const CheckInfo* const> CheckCatalog() {
  static const std::vector<const CheckInfo*> kAll = [] {
    std::vector<const CheckInfo*> all = {
#define SHAKEDOWN_CHECK(name) &checks::name,
#include "analysis/checks/catalog.def"
#undef SHAKEDOWN_CHECK
    };
    std::stable_sort(all.begin(), all.end(), [](const CheckInfo* a, const CheckInfo* b) {
      return a->check_class < b->check_class;
    });
    return all;
  }();
  return kAll;
}

const CheckInfo* FindCheck(std::string_view name) {
  for (const CheckInfo* check : CheckCatalog()) {
    if (check->name == name) return check;
  }
  return nullptr;
}

std::string_view ToString(CheckStatus status) {
  switch (status) {
    case CheckStatus::kPass:
      return "PASS";
    case CheckStatus::kFail:
      return "FAIL";
    case CheckStatus::kInvalid:
      return "INVALID";
    case CheckStatus::kInconclusive:
      return "INCONCLUSIVE";
    case CheckStatus::kNotJudged:
      return "NOT_JUDGED";
    case CheckStatus::kNotApplicable:
      return "NOT_APPLICABLE";
  }
  return "INCONCLUSIVE";
}

std::string_view ToString(CheckClass value) {
  switch (value) {
    case CheckClass::kAssumption:
      return "assumption";
    case CheckClass::kProof:
      return "proof";
    case CheckClass::kReaction:
      return "reaction";
    case CheckClass::kRecovery:
      return "recovery";
    case CheckClass::kContinuity:
      return "continuity";
    case CheckClass::kCleanUp:
      return "clean-up";
  }
  return "";
}

std::string_view ToString(Need need) {
  switch (need) {
    case Need::kPlan:
      return "the plan (run.json)";
    case Need::kInjected:
      return "what was injected (injected.jsonl)";
    case Need::kJob:
      return "the job's configuration (run.started or job.json)";
    case Need::kObserved:
      return "what was observed (observed.jsonl)";
    case Need::kPages:
      return "samples of the progress pages (page.sampled)";
    case Need::kExits:
      return "exits (process.exited, job.exited)";
    case Need::kLoad:
      return "load of the machine (load.sampled)";
    case Need::kLedgers:
      return "ledgers of the ranks (ledger.bin)";
    case Need::kRankLogs:
      return "logs of the ranks (log.jsonl)";
    case Need::kLauncherLog:
      return "the launcher's log (launcher.jsonl)";
    case Need::kCheckpoints:
      return "inventory of the checkpoints (checkpoints.jsonl)";
    case Need::kWeights:
      return "dumps of the weights (weights-start.bin, weights-end.bin)";
    case Need::kReference:
      return "an undisturbed run with the same numerics (reference/)";
    case Need::kLeftovers:
      return "what was left (leftovers.inspected)";
  }
  return "";
}

}  // namespace shakedown
