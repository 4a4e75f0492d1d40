// All that a check may look at.
#pragma once

#include "analysis/checks/check.h"
#include "analysis/evidence/observed.h"
#include "analysis/evidence/reference.h"
#include "analysis/evidence/seal.h"
#include "analysis/evidence/secret.h"
#include "analysis/timeline/load.h"
#include "analysis/timeline/timeline.h"

namespace shakedown {

// References to what the caller keeps alive. A check may use plan(), expect() and job() when it
// declares Need::kPlan, Need::kPlan and Need::kJob.
struct CheckInput {
  const ObservedEvidence& observed;
  const SecretEvidence& secret;
  const ReferenceEvidence& reference;
  const SealReport& seal;
  const Timeline& timeline;
  const LoadReport& load;

  const Plan& plan() const { return *secret.plan; }
  const Expectation& expect() const { return secret.plan->scenario.expect; }
  const JobConfig& job() const { return *observed.job; }
  bool no_fault() const { return secret.plan->injections.empty(); }
};

}  // namespace shakedown
