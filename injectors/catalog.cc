#include "injectors/catalog.h"

#include <algorithm>
#include <iterator>

namespace shakedown {
namespace {

// Sorted as the file is; CMake refuses one that is not (Catalog.cmake).
constexpr const Fault* kFaults[] = {
#define SHAKEDOWN_FAULT(family, name) &faults::family##_##name,
#include "injectors/catalog.def"
#undef SHAKEDOWN_FAULT
};

}  // namespace

std::span<const Fault* const> FaultCatalog() { return kFaults; }

const Fault* FindFault(std::string_view full_name) {
  const auto* const it = std::find_if(std::begin(kFaults), std::end(kFaults),
                                      [&](const Fault* f) { return f->full_name() == full_name; });
  return it == std::end(kFaults) ? nullptr : *it;
}

}  // namespace shakedown
