#include "harness/suite/suite.h"

#include <algorithm>

#include "harness/base/time.h"

namespace shakedown {
namespace {

bool Ran(const SuiteResult& result, const std::string& name) {
  return std::any_of(result.runs.begin(), result.runs.end(), [&](const RunVerdict& run) {
    return run.scenario == name && run.verdict != Verdict::kSkipped;
  });
}

}  // namespace

SuiteOutcome RunSuite(const Suite& suite, const std::vector<Scenario>& scenarios,
                      const SuiteOptions& options) {
  SuiteOutcome out;
  out.result.suite = suite.name;
  const MonoTime began = MonoNow();
  RunnerOptions runner = options.runner;
  std::vector<Verdict> counts;
  for (const Scenario& scenario : scenarios) {
    runner.command = options.runner.command + " " + ListedName(scenario.path);
    RunnerResult run = RunScenario(scenario, runner);
    // The first run without a fault says what this machine needs for a step and a start.
    if (!runner.calibration && scenario.faults.empty() && run.verdict.verdict == Verdict::kPass) {
      runner.calibration = Calibrate(RunDir(run.verdict.run_dir));
    }
    counts.push_back(CountsAs(run.verdict));
    out.result.dirty |= run.verdict.dirty;
    if (options.finished) options.finished(run.verdict);
    out.result.runs.push_back(std::move(run.verdict));
    if (run.interrupted_by != 0) {
      out.interrupted_by = run.interrupted_by;
      break;
    }
  }
  for (const std::string& name : suite.require) {
    // What had to run and did not is missing evidence.
    if (!Ran(out.result, name)) counts.push_back(Verdict::kInconclusive);
  }
  out.result.verdict = MergeVerdicts(counts);
  out.result.wall_ms = ToMs(MonoNow() - began);
  return out;
}

}  // namespace shakedown
