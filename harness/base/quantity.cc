#include "harness/base/quantity.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace shakedown {
namespace {

struct Unit {
  std::string_view name;
  int64_t factor;
};

constexpr Unit kDurationUnits[] = {{"ns", 1},
                                   {"us", 1'000},
                                   {"ms", 1'000'000},
                                   {"s", 1'000'000'000},
                                   {"min", 60'000'000'000},
                                   {"h", 3'600'000'000'000}};
constexpr Unit kByteUnits[] = {
    {"B", 1},      {"KiB", 1LL << 10}, {"MiB", 1LL << 20},   {"GiB", 1LL << 30},
    {"kB", 1'000}, {"MB", 1'000'000},  {"GB", 1'000'000'000}};

template <size_t N>
Result<int64_t> Parse(std::string_view text, const Unit (&units)[N], std::string_view kind,
                      std::string_view example) {
  const auto bad = [&](std::string_view why) {
    return Fail("'" + std::string(text) + "' is not a " + std::string(kind) + ": " +
                std::string(why) + " (write it like " + std::string(example) + ")");
  };
  double number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc() || !std::isfinite(number)) return bad("it does not begin with a number");
  if (number < 0) return bad("it is negative");
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.empty()) return bad("the unit is missing");
  for (const Unit& u : units) {
    if (u.name != unit) continue;
    const double value = number * static_cast<double>(u.factor);
    if (value > 9.0e18) return bad("it is too large");
    return static_cast<int64_t>(std::llround(value));
  }
  return bad("the unit '" + std::string(unit) + "' is unknown");
}

}  // namespace

Result<Nanoseconds> ParseDuration(std::string_view text) {
  return Parse(text, kDurationUnits, "duration", "250ms, 5s or 10min").map([](int64_t ns) {
    return Nanoseconds(ns);
  });
}

Result<int64_t> ParseBytes(std::string_view text) {
  return Parse(text, kByteUnits, "size", "64MiB");
}

std::string FormatDuration(Nanoseconds duration) {
  const int64_t ns = duration.count();
  if (ns == 0) return "0s";
  for (auto it = std::rbegin(kDurationUnits); it != std::rend(kDurationUnits); ++it) {
    if (ns % it->factor == 0) return std::to_string(ns / it->factor) + std::string(it->name);
    // One decimal place above a whole second reads better than five digits of milliseconds.
    if (it->name == "s" && ns > it->factor && ns % (it->factor / 10) == 0) {
      char text[32];
      std::snprintf(text, sizeof text, "%.1fs", static_cast<double>(ns) / 1e9);
      return text;
    }
  }
  return std::to_string(ns) + "ns";
}

std::string FormatBytes(int64_t bytes) {
  for (const Unit& u : {kByteUnits[3], kByteUnits[2], kByteUnits[1]}) {
    if (bytes != 0 && bytes % u.factor == 0) {
      return std::to_string(bytes / u.factor) + std::string(u.name);
    }
  }
  return std::to_string(bytes) + "B";
}

}  // namespace shakedown
