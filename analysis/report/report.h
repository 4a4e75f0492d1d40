// What there is to report beside one run: RunVerdict (analysis/verdict/verdict.h) is the run.
#pragma once

#include <string>
#include <vector>

#include "analysis/verdict/verdict.h"

namespace shakedown {

// Many scenarios, each once. A scenario that this machine cannot run is a run with verdict SKIPPED
// whose reason names what is lacking.
struct SuiteResult {
  std::string suite;                    // a listed name or the folder
  Verdict verdict = Verdict::kSkipped;  // the merge over what each run counts as
  bool dirty = false;                   // any run is
  std::vector<RunVerdict> runs;         // in the order in which they ran, control first
  double wall_ms = 0;
};

// The same scenario many times.
struct RepeatResult {
  RepeatVerdict merged;
  std::vector<RunVerdict> runs;
  double wall_ms = 0;
};

}  // namespace shakedown
