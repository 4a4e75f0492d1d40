#include "harness/wire/json.h"

#include <algorithm>

namespace shakedown {
namespace {

// `byte` is that of the last one read, from 1; beyond the end when the text ends too early. What
// the library says beside is written for those who know its source.
std::string WhyNotJson(std::string_view text, size_t byte) {
  if (text.empty()) return "not JSON: the text is empty";
  const std::string_view read = text.substr(0, byte == 0 ? 0 : byte - 1);
  const size_t last_line = read.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = 1 + std::ranges::count(read, '\n');
  const auto column = 1 + std::ranges::count_if(read.substr(last_line), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
                      });
  return std::string("not JSON: ") +
         (byte > text.size() ? "it ends too early" : "unexpected text") + " in line " +
         std::to_string(line) + ", column " + std::to_string(column) + " (byte " +
         std::to_string(byte) + ")";
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& e) {
    return Fail(WhyNotJson(text, e.byte));
  } catch (const Json::exception&) {
    return Fail("not JSON: a number is beyond what can be read");
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
