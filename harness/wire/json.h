// The one place that names the JSON library. Records of evidence have open sets of fields, so parts
// that read or write them need the document type itself; a typed wrapper would be a second JSON
// library. Order of keys is kept, so that files read as they were written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

// Whoever includes the library compiles a second parser, of nlohmann::json, for its literal
// ""_json, which nobody here uses: a third of what the header costs. With this the literal is only
// declared, and its body becomes that of a template that nobody instantiates.
#define JSON_USE_GLOBAL_UDLS 0
#define _json(...)    \
  _json(__VA_ARGS__); \
  template <typename> \
  json literal_json(__VA_ARGS__)  // NOLINT(bugprone-reserved-identifier)
#include <nlohmann/json.hpp>
#undef _json

#include "harness/base/status.h"

// Compiled once, in json_library.cc.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace shakedown {

using Json = nlohmann::ordered_json;

// Parses one document. Never throws: text that is not JSON is an Error with the byte position.
Result<Json> ParseJson(std::string_view text);

// Compact text on one line. Bytes that are not UTF-8 (a job may print anything) become U+FFFD.
std::string DumpJson(const Json& json);
// Indented by two, for files that people open.
std::string DumpPretty(const Json& json);

// Fields of untrusted records: absent, null or of another type is nullopt, never an exception.
std::optional<int64_t> IntField(const Json& object, std::string_view key);
std::optional<double> NumberField(const Json& object, std::string_view key);
std::optional<bool> BoolField(const Json& object, std::string_view key);
std::optional<std::string> StringField(const Json& object, std::string_view key);
// Null when absent.
const Json& Field(const Json& object, std::string_view key);

}  // namespace shakedown
