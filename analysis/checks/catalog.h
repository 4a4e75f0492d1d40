// All checks.
#pragma once

#include <span>
#include <string_view>

#include "analysis/checks/check.h"

namespace shakedown {

// In the order in which they are judged: by class, then by name.
std::span<const CheckInfo* const> CheckCatalog();
// nullptr when there is no such check.
const CheckInfo* FindCheck(std::string_view name);

}  // namespace shakedown
