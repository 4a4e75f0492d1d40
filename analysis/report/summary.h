// Counting runs, the same for every report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/report/report.h"

namespace shakedown::report {

using Counts = std::vector<std::pair<std::string, int>>;

// What each run counts as, in lower case, every verdict listed: {"pass", 7}, {"fail", 0}, ...
Counts CountVerdicts(const std::vector<RunVerdict>& runs);

// Proven injections by level ("real", "real effect", "simulated"), then "not proven".
Counts CountLevels(const std::vector<RunVerdict>& runs);

}  // namespace shakedown::report
