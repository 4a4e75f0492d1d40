#include "harness/suite/runner.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "analysis/report/json.h"
#include "harness/base/file.h"
#include "harness/base/log.h"
#include "harness/plan/make_plan.h"
#include "harness/process/wait_status.h"
#include "harness/run/reference.h"
#include "harness/wire/environment.h"
#include "harness/wire/ledger.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

RunVerdict WithoutRun(const Scenario& scenario, uint64_t seed, Verdict verdict,
                      std::string reason) {
  RunVerdict out;
  out.scenario = scenario.name;
  out.verdict = verdict;
  out.reason = std::move(reason);
  out.seed = seed;
  return out;
}

// The scenario and its seed are in run.json, so that even a run that never began can be explained.
RunVerdict JudgeRun(const RunDir& run, const RunOutcome& outcome, const Plan& plan) {
  JudgeOptions options;
  options.dirty = outcome.dirty;
  if (outcome.how == RunOutcome::How::kFailed) options.harness_error = outcome.reason;
  Result<RunVerdict> judged = Judge(run, options);
  if (!judged) {
    RunVerdict out = WithoutRun(plan.scenario, plan.seed, Verdict::kError,
                                outcome.reason.empty() ? judged.error().message : outcome.reason);
    out.plan_digest = plan.digest;
    out.dirty = outcome.dirty;
    // It holds no record of a run, so that no command could read it.
    std::error_code ignored;
    fs::remove_all(run.root(), ignored);
    return out;
  }
  return std::move(*judged);
}

void WriteVerdict(const RunDir& run, RunVerdict& verdict) {
  if (verdict.run_dir.empty()) return;  // nothing was recorded
  Status written = PublishFile(run.verdict(), DumpPretty(report::RunJson(verdict)) + "\n");
  if (written) return;
  LogError(written.error().message);
  if (verdict.verdict == Verdict::kError) return;  // what went wrong first says more
  verdict.verdict = std::max(verdict.verdict, Verdict::kError);
  verdict.as_expected = false;
  verdict.reason = "the verdict could not be written: " + written.error().message;
}

}  // namespace

fs::path DefaultRunsFolder() {
  const char* runs = std::getenv(env::kRunsDir);
  return runs != nullptr && *runs != '\0' ? fs::path(runs) : fs::path("runs");
}

RunnerResult RunScenario(const Scenario& scenario, const RunnerOptions& options) {
  const auto error = [&](const Error& e) {
    return RunnerResult{WithoutRun(scenario, options.seed, Verdict::kError, e.message), 0};
  };
  const Machine machine = DetectMachine();
  Result<Plan> plan = MakePlan(scenario, options.seed, machine);
  if (!plan) {
    return {WithoutRun(scenario, options.seed, Verdict::kSkipped, plan.error().message), 0};
  }
  Result<Binaries> binaries = FindBinaries();
  if (!binaries) return error(binaries.error());
  RunRequest request{*plan,          {}, *binaries,       machine, options.command,
                     Json::object(), {}, options.progress};
  if (options.progress) options.progress({RunProgress::What::kStarting, 0, 0, 0, "reference run"});
  Result<ReferenceOutcome> reference = EnsureReference(request);
  if (!reference) return error(reference.error());
  if (reference->run.how == RunOutcome::How::kInterrupted) {
    RunVerdict stopped =
        WithoutRun(scenario, options.seed, Verdict::kInconclusive,
                   "interrupted while the reference was made: " + reference->run.reason);
    stopped.dirty = reference->run.dirty;
    return {stopped, reference->run.signal};
  }
  // Only now: a run directory without a run would be one that no command can read.
  Result<fs::path> folder = MakeRunDirectory(options.out, scenario.name);
  if (!folder) return error(folder.error());
  const RunDir run(*folder);
  request.run_dir = *folder;
  request.reference_dir = reference->reference.directory;
  request.notes["reference"] = reference->reference.ToJson();
  request.notes["calibration"] = options.calibration
                                     ? Json{{"step_ms", options.calibration->step_ms},
                                            {"startup_ms", options.calibration->startup_ms}}
                                     : Json(nullptr);
  const RunOutcome outcome = ExecuteRun(request);
  RunnerResult result{JudgeRun(run, outcome, *plan), 0};
  if (outcome.how == RunOutcome::How::kInterrupted) result.interrupted_by = outcome.signal;
  WriteVerdict(run, result.verdict);
  return result;
}

std::optional<Calibration> Calibrate(const RunDir& run) {
  const Result<std::string> text = ReadFile(run.observed());
  if (!text) return std::nullopt;
  MonoTime started{0};
  for (const Event& event : ParseEvents(*text).events) {
    if (event.name == events::kAttemptStarted && started.ns == 0) started = event.t;
  }
  std::vector<double> steps;
  double startup = 0;
  for (int rank = 0;; ++rank) {
    const Result<std::string> bytes = ReadFile(run.rank(0, rank) / kRankLedger);
    if (!bytes) break;
    const Result<Ledger> ledger = DecodeLedger(*bytes);
    if (!ledger) return std::nullopt;
    int64_t last = 0;
    for (const LedgerRecord& record : ledger->records) {
      const auto* step = std::get_if<LedgerStep>(&record);
      if (step == nullptr) continue;
      if (last == 0) {
        startup = std::max(startup, static_cast<double>(step->t_ns - started.ns) / 1e6);
      } else {
        steps.push_back(static_cast<double>(step->t_ns - last) / 1e6);
      }
      last = step->t_ns;
    }
  }
  if (steps.empty() || started.ns == 0) return std::nullopt;
  std::nth_element(steps.begin(), steps.begin() + static_cast<long>(steps.size() / 2), steps.end());
  return Calibration{steps[steps.size() / 2], startup};
}

}  // namespace shakedown
