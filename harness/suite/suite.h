// Many scenarios, the control first.
#pragma once

#include <functional>

#include "analysis/report/report.h"
#include "harness/scenario/library.h"
#include "harness/suite/runner.h"

namespace shakedown {

struct SuiteOptions {
  RunnerOptions runner;
  // After each run.
  std::function<void(const RunVerdict&)> finished;
};

struct SuiteOutcome {
  SuiteResult result;
  int interrupted_by = 0;
};

// `scenarios` in the order in which they run. When the control does not pass, the others run all
// the same: what they show is still worth something, but the suite's verdict holds the control's.
SuiteOutcome RunSuite(const Suite& suite, const std::vector<Scenario>& scenarios,
                      const SuiteOptions& options);

}  // namespace shakedown
