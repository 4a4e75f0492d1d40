#include "harness/wire/json.h"

namespace shakedown {

Result<Json> ParseJson(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& e) {
    return Fail(std::string("not JSON: ") + e.what());
  }
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string DumpPretty(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

const Json& Field(const Json& object, std::string_view key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

std::optional<int64_t> IntField(const Json& object, std::string_view key) {
  const Json& f = Field(object, key);
  if (!f.is_number_integer()) return std::nullopt;
  if (f.is_number_unsigned() && f.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  return f.get<int64_t>();
}

std::optional<double> NumberField(const Json& object, std::string_view key) {
  const Json& f = Field(object, key);
  return f.is_number() ? std::optional<double>(f.get<double>()) : std::nullopt;
}

std::optional<bool> BoolField(const Json& object, std::string_view key) {
  const Json& f = Field(object, key);
  return f.is_boolean() ? std::optional<bool>(f.get<bool>()) : std::nullopt;
}

std::optional<std::string> StringField(const Json& object, std::string_view key) {
  const Json& f = Field(object, key);
  return f.is_string() ? std::optional<std::string>(f.get<std::string>()) : std::nullopt;
}

}  // namespace shakedown
