// Names of the fault points (points.def). A C++ and shared-memory vocabulary: the probe writes the
// value, scenarios and analysis use the name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shakedown {

enum class Point : uint8_t {
  kNone = 0,
#define SHAKEDOWN_POINT(enumerator, name, phase, sentence) enumerator,
#include "harness/wire/points.def"
#undef SHAKEDOWN_POINT
  kCount
};
static_assert(static_cast<int>(Point::kCount) <= 64, "the page's armed mask has 64 bits");

struct PointInfo {
  Point point;
  std::string_view name;
  std::string_view phase;
  std::string_view sentence;
};

inline constexpr PointInfo kPoints[] = {
#define SHAKEDOWN_POINT(enumerator, name, phase, sentence) \
  {Point::enumerator, name, #phase, sentence},
#include "harness/wire/points.def"
#undef SHAKEDOWN_POINT
};

// "" for kNone and for a value that is no point (pages are untrusted).
constexpr std::string_view PointName(Point point) {
  for (const PointInfo& p : kPoints) {
    if (p.point == point) return p.name;
  }
  return "";
}
constexpr std::string_view PointPhase(Point point) {
  for (const PointInfo& p : kPoints) {
    if (p.point == point) return p.phase;
  }
  return "";
}
constexpr std::optional<Point> FindPoint(std::string_view name) {
  for (const PointInfo& p : kPoints) {
    if (p.name == name) return p.point;
  }
  return std::nullopt;
}

}  // namespace shakedown
