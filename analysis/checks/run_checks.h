// Calls the checks: what is common to all of them is done here, once.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/checks/check_input.h"

namespace shakedown {

// Why `need` is not there, one clause; nullopt when it is. "Absent at the seal" is there: it counts
// against the job, and the check sees that nothing is in it.
std::optional<std::string> WhatIsMissing(const CheckInput& input, Need need);

// One check: INCONCLUSIVE when evidence is missing, when it throws, when a PASS compared less than
// its least, and, of a check by time, instead of FAIL under overload.
Finding RunCheck(const CheckInfo& check, const CheckInput& input);

struct Checked {
  const CheckInfo* check = nullptr;
  Finding finding;
};
// All checks, in the order of judging. When assumptions or fault_proven are not kept, those that
// depend on the fault are NOT_JUDGED; of the others, promises that are broken are listed all the
// same.
std::vector<Checked> RunChecks(const CheckInput& input);

}  // namespace shakedown
