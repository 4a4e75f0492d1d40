// Parameters of an injection, which validation has completed and checked: what is missing or of
// another type here is a bug of Shakedown.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/wire/scenario.h"

namespace shakedown {

// Durations in nanoseconds, sizes in bytes, counts.
inline std::optional<int64_t> OptionalInt(const Params& params, std::string_view name) {
  const auto it = params.find(std::string(name));
  if (it == params.end()) return std::nullopt;
  const int64_t* value = std::get_if<int64_t>(&it->second);
  SHAKEDOWN_ASSERT(value != nullptr);
  return *value;
}

inline int64_t IntParam(const Params& params, std::string_view name) {
  const std::optional<int64_t> value = OptionalInt(params, name);
  SHAKEDOWN_ASSERT(value.has_value());
  return *value;
}

inline std::string TextParam(const Params& params, std::string_view name) {
  const auto it = params.find(std::string(name));
  SHAKEDOWN_ASSERT(it != params.end() && std::holds_alternative<std::string>(it->second));
  return std::get<std::string>(it->second);
}

}  // namespace shakedown
