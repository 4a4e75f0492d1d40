// What concerns more than one key of a scenario: a rank outside the job, a fault's own parameters
// and points, expectations that contradict each other.
#pragma once

#include <vector>

#include "harness/scenario/problem.h"
#include "harness/scenario/tree.h"
#include "harness/wire/scenario.h"

namespace shakedown {

// `scenario` was bound from `root` as far as it could be; keys that had a problem hold their
// defaults and are not judged again. Completes it: fault parameters, points, the job's data_dir.
void CheckScenario(const std::vector<Source>& sources, const Node& root, Scenario* scenario,
                   std::vector<Problem>* problems, std::vector<Problem>* warnings);

}  // namespace shakedown
