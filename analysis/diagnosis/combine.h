// From what the detectors say to one diagnosis. README.md states the rule.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/diagnosis/detector.h"

namespace shakedown::diagnosis {

// A name needs this much; below it the answer is unknown.
inline constexpr double kNamed = 0.6;
// A rival that speaks at least this surely for somebody else has to be explained away.
inline constexpr double kRival = 0.5;

// Pure. `findings` are the detectors' answers about `evidence`; where two say the same, the words
// of the first are kept.
Diagnosis Combine(const ObservedEvidence& evidence, std::vector<Findings> findings);

// File name in analysis/runbooks; empty where there is no page.
std::string_view RunbookOf(std::string_view mechanism);

}  // namespace shakedown::diagnosis
