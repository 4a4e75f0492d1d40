// Clocks. Monotonic and wall time are distinct types, so that they cannot be subtracted from one
// another. CLOCK_MONOTONIC is one clock for all processes of a machine: times taken by the
// controller, the launcher and the ranks may be compared as they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace shakedown {

using Nanoseconds = std::chrono::nanoseconds;
using Milliseconds = std::chrono::milliseconds;

// Nanoseconds on CLOCK_MONOTONIC.
struct MonoTime {
  int64_t ns = 0;
  auto operator<=>(const MonoTime&) const = default;
};
inline Nanoseconds operator-(MonoTime a, MonoTime b) { return Nanoseconds(a.ns - b.ns); }
inline MonoTime operator+(MonoTime a, Nanoseconds d) { return MonoTime{a.ns + d.count()}; }
inline MonoTime operator-(MonoTime a, Nanoseconds d) { return MonoTime{a.ns - d.count()}; }

// Nanoseconds since 1970-01-01 UTC on CLOCK_REALTIME.
struct WallTime {
  int64_t ns = 0;
  auto operator<=>(const WallTime&) const = default;
};

MonoTime MonoNow();
WallTime WallNow();

// RFC 3339, milliseconds, UTC: "2026-11-30T19:45:14.123Z".
std::string FormatRfc3339(WallTime time);

inline double ToMs(Nanoseconds d) { return static_cast<double>(d.count()) / 1e6; }

}  // namespace shakedown
