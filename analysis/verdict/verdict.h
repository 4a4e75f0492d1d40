// The verdict of a run, from its run directory alone:
//   evidence -> timeline -> diagnosis (blind) -> checks -> verdict
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/checks/check.h"
#include "analysis/diagnosis/diagnosis.h"
#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/json.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

// Ordered by weight: the merge of a suite is the heaviest. SKIPPED never counts as PASS.
enum class Verdict { kSkipped, kPass, kInconclusive, kInvalid, kError, kFail };
std::string_view ToString(Verdict verdict);  // "PASS", ...
std::optional<Verdict> ParseVerdict(std::string_view text);
// PASS 0, FAIL 1, INVALID 3, INCONCLUSIVE 4, ERROR 5, SKIPPED 77; dirty wins with 6.
ExitCode ExitCodeOf(Verdict verdict, bool dirty);

struct CheckResult {
  std::string check;
  Finding finding;
  // Set while a waiver of the scenario covers it: then a FAIL does not fail the run.
  std::string waived;  // reason and date; "" when not waived
};

struct InjectionResult {
  std::string fault;
  int id = 0;
  int rank = 0;
  std::optional<int> worker;
  int64_t step = 0;
  std::string point;
  int attempt = 0;
  std::string level;
  std::string means;
  std::optional<double> hold_ms;
  bool proven = false;
};

// Zero of all times is t0, just before the first injecting call; wall_ms is the job's.
struct RunTimes {
  std::optional<double> detected_ms;
  std::optional<double> timeout_ms;
  std::optional<double> first_new_step_ms;
  std::optional<int64_t> lost_steps;
  std::optional<double> rework_ms;
  std::optional<double> wall_ms;
};

struct AttemptSummary {
  int attempt = 0;
  std::optional<double> started_ms;  // after run.started
  std::optional<double> ended_ms;
  std::optional<int64_t> resumed_from;  // 0: fresh start
  std::optional<int64_t> last_step;     // completed by all ranks
  struct Exit {
    int rank = 0;
    std::optional<int> code;
    std::string signal;
    std::string source;
  };
  std::vector<Exit> exits;
};

// The `run` object of the command line contract.
struct RunVerdict {
  std::string scenario;
  Verdict verdict = Verdict::kInconclusive;
  bool as_expected = false;
  std::string not_as_expected;  // why, one sentence; "" when as_expected
  bool dirty = false;
  std::string reason;   // one sentence: what decided
  std::string run_dir;  // absolute
  uint64_t seed = 0;
  std::string plan_digest;
  std::vector<InjectionResult> injections;
  std::vector<CheckResult> checks;  // in the order of judging
  Diagnosis diagnosis;
  std::optional<double> noticed_ms;     // when Shakedown itself noticed, after t0
  std::optional<bool> diagnosis_right;  // nullopt: the scenario states none
  RunTimes times;
  std::vector<AttemptSummary> attempts;
  bool overloaded = false;  // the machine was; time checks are INCONCLUSIVE at worst
};
Json ToJson(const RunVerdict& verdict);
// For suites and reports that read verdict.json. Fields that a reader can do without may be absent.
Result<RunVerdict> RunVerdictFromJson(const Json& json);

struct JudgeOptions {
  // What the controller knows and the evidence may not say: its own failure makes the run ERROR.
  std::optional<std::string> harness_error;
  // Something could not be undone, beside what the journal says.
  bool dirty = false;
  // Waivers are compared with this day.
  WallTime today = WallNow();
};

// Pure but for reading the run directory; writes nothing. An Error means that `run` is no run
// directory; damaged evidence gives a verdict (INCONCLUSIVE or ERROR), not an Error.
Result<RunVerdict> Judge(const RunDir& run, const JudgeOptions& options = {});

// What a run counts as in a suite: as_expected is PASS; else its verdict, but FAIL where that was
// PASS, and ERROR for a canary.
enum class SuiteRole { kOrdinary, kCanary };
Verdict CountsAs(const RunVerdict& run, SuiteRole role = SuiteRole::kOrdinary);
// FAIL, ERROR, INVALID, INCONCLUSIVE, PASS; SKIPPED when nothing else ran (also for an empty list).
Verdict MergeVerdicts(const std::vector<Verdict>& verdicts);

// `run --repeat`: the worst verdict; no majority, no retry to green.
struct RepeatVerdict {
  Verdict verdict = Verdict::kSkipped;
  bool dirty = false;
  bool unstable = false;         // verdicts disagree
  Json counts = Json::object();  // by verdict
  Json spread = Json::object();  // time name -> {min, median, max}, in ms or steps
};
RepeatVerdict MergeRepeats(const std::vector<RunVerdict>& runs);
Json ToJson(const RepeatVerdict& repeat);  // {verdict, dirty, unstable, counts, spread}

}  // namespace shakedown
