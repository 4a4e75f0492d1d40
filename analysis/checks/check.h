// A check: one promise of a sound job, and the pure function that says whether it was kept.
//
// A check declares itself as one constant in analysis/checks/<name>.cc, listed in catalog.def.
// Scenario parser, plan, `list` and `explain` read the declaration; the runner (run_checks.h) calls
// the function. README.md of analysis says how to add one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/evidence/observed.h"
#include "harness/wire/json.h"

namespace shakedown {

enum class CheckStatus {
  kPass,
  kFail,
  kInvalid,        // only of assumptions and fault_proven: the run proves nothing
  kInconclusive,   // evidence is missing or contradicts itself
  kNotJudged,      // an assumption did not hold
  kNotApplicable,  // the promise has no object in this run
};
std::string_view ToString(CheckStatus status);  // "PASS", "NOT_JUDGED", ...

// Judged in this order.
enum class CheckClass { kAssumption, kProof, kReaction, kRecovery, kContinuity, kCleanUp };
std::string_view ToString(CheckClass value);  // "assumption", "clean-up", ...

// What a check cannot do without. The runner answers INCONCLUSIVE when it is missing.
enum class Need {
  kPlan,         // run.json
  kInjected,     // injected.jsonl
  kJob,          // the job's configuration
  kObserved,     // observed.jsonl with run.started
  kPages,        // samples of the progress pages
  kExits,        // process.exited and job.exited
  kLoad,         // load.sampled
  kLedgers,      // a readable ledger of each rank of the last attempt
  kRankLogs,     // log.jsonl of each rank of each attempt
  kLauncherLog,  // launcher.jsonl of each attempt
  kCheckpoints,  // checkpoints.jsonl
  kWeights,      // dumps of the weights of the last attempt
  kReference,    // reference/, made with the numerics of this run
  kLeftovers,    // leftovers.inspected
};
std::string_view ToString(Need need);  // "the plan (run.json)", ...

// A key of the scenario that the check reads.
struct CheckParameter {
  std::string_view key;        // "expect.budget.recovery"
  std::string_view meaning;    // a sentence
  std::string_view otherwise;  // what holds when it is absent
};

// What a check found. `reason` is one sentence; of a broken promise it begins "broke <check>: ".
struct Finding {
  CheckStatus status = CheckStatus::kInconclusive;
  std::string reason;
  Json expected;
  Json observed;
  std::string unit;
  int64_t compared = 0;  // how many things were compared
  int64_t least = 1;     // fewer compared than this is INCONCLUSIVE, never PASS
  std::vector<Where> where;
};

struct CheckInput;  // check_input.h

struct CheckInfo {
  std::string_view name;
  std::string_view promise;  // one sentence
  CheckClass check_class;
  std::span<const Need> evidence;
  std::span<const CheckParameter> parameters;
  // Judged by time: under measured overload a FAIL becomes INCONCLUSIVE.
  bool by_time = false;
  // Nothing is left to judge when the fault did not act as planned: NOT_JUDGED after an INVALID.
  bool depends_on_fault = true;
  Finding (*function)(const CheckInput& input);
};

}  // namespace shakedown
