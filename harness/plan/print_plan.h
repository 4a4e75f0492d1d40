// What a plan would touch, where, for how long and at what cost: for people and for programs.
#pragma once

#include <string>

#include "harness/wire/json.h"
#include "harness/wire/scenario.h"

namespace shakedown {

// Lines of at most `width` characters where words allow it.
std::string PlanText(const Plan& plan, int width);

// The plan as ToJson(plan) has it, with `touches` (per injection: what, where, how long, undone by)
// and `cost`.
Json PlanJson(const Plan& plan);

}  // namespace shakedown
