// Whether one injection acted exactly as planned; for fault_proven and for the report of each
// injection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/checks/check_input.h"

namespace shakedown {

struct NotProven {
  std::string why;
  std::vector<Where> where;
};
// nullopt: proven. REQUIRES: input.secret.plan.
std::optional<NotProven> WhyNotProven(const CheckInput& input, const Injection& injection);

// Time that the target was held for this injection; nullopt when it was not.
std::optional<double> HoldMs(const SecretEvidence& secret, int injection);

}  // namespace shakedown
