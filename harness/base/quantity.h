// Quantities as people write them: "250ms", "5s", "64MiB". A bare number is never accepted, since
// it does not say its unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/base/status.h"
#include "harness/base/time.h"

namespace shakedown {

// Units: ns, us, ms, s, min, h. Fractions are accepted ("0.5s"); negative values are not.
Result<Nanoseconds> ParseDuration(std::string_view text);
// Units: B, KiB, MiB, GiB, kB, MB, GB.
Result<int64_t> ParseBytes(std::string_view text);

// The shortest exact form: 250ms, 5s, 1.5s, 10min.
std::string FormatDuration(Nanoseconds duration);
// The largest unit that divides exactly: 64MiB, 1536KiB, 17B.
std::string FormatBytes(int64_t bytes);

}  // namespace shakedown
