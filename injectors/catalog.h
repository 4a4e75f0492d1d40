// All faults, sorted by name.
#pragma once

#include <span>
#include <string_view>

#include "injectors/fault.h"

namespace shakedown {

namespace faults {
#define SHAKEDOWN_FAULT(family, name) extern const Fault family##_##name;
#include "injectors/catalog.def"
#undef SHAKEDOWN_FAULT
}  // namespace faults

std::span<const Fault* const> FaultCatalog();
// nullptr when there is no such fault.
const Fault* FindFault(std::string_view full_name);

}  // namespace shakedown
