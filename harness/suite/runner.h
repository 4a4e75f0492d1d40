// One scenario from plan to verdict: reference, run, judgement, verdict.json. What `run`, `suite`
// and
// `--repeat` have in common.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "analysis/verdict/verdict.h"
#include "harness/run/controller.h"

namespace shakedown {

struct Calibration {
  double step_ms = 0;     // median time of a step in the control run
  double startup_ms = 0;  // attempt start to its first completed step, slowest rank
};

struct RunnerOptions {
  std::filesystem::path out;  // run directories are made inside
  uint64_t seed = 1;
  std::string command;  // what a person types to repeat this run
  std::optional<Calibration> calibration;
  std::function<void(const RunProgress&)> progress;
};

struct RunnerResult {
  RunVerdict verdict;
  int interrupted_by = 0;  // signal; 0: not interrupted
};

// Never fails: what keeps a scenario from running is a verdict of its own (SKIPPED: this machine
// lacks a means; ERROR: Shakedown failed), with the reason.
RunnerResult RunScenario(const Scenario& scenario, const RunnerOptions& options);

// From the evidence of a control run; nullopt when there is too little.
std::optional<Calibration> Calibrate(const RunDir& run);

// Where runs go without --out: $SHAKEDOWN_RUNS, else ./runs.
std::filesystem::path DefaultRunsFolder();

}  // namespace shakedown
