// What decides the bits of a result beside code and data: CPU capability, math library settings,
// thread counts. All are pinned in the ranks' environment and recorded; results are compared only
// between equal settings (measured: three values of ATEN_CPU_CAPABILITY give three different sets
// of weights, MKL_CBWR a fourth).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/wire/json.h"

namespace shakedown {

// NAME, value; what the controller sets for every rank on this machine.
std::vector<std::pair<std::string, std::string>> PinnedNumerics();
Json NumericsRecord();
Json MachineRecord();

}  // namespace shakedown
