// Scenario to plan: every random draw is made here, every choice of means too. Starts nothing,
// writes nothing.
#pragma once

#include <cstdint>

#include "harness/base/status.h"
#include "harness/wire/scenario.h"
#include "injectors/fault.h"

namespace shakedown {

// One seed gives one plan, and one digest wherever the scenario's file lies. An Error names the
// fault that `machine` has no means for: the scenario would be SKIPPED.
Result<Plan> MakePlan(const Scenario& scenario, uint64_t seed, const Machine& machine);

}  // namespace shakedown
