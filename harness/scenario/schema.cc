#include "harness/scenario/schema.h"

#include "harness/scenario/keys.h"
#include "injectors/catalog.h"

namespace shakedown {
namespace {

constexpr char kDurationPattern[] = R"(^[0-9]+(\.[0-9]+)?(ns|us|ms|s|min|h)$)";
constexpr char kBytesPattern[] = R"(^[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|kB|MB|GB)$)";
constexpr char kDatePattern[] = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";
constexpr char kNamePattern[] = "^[A-Za-z0-9_.-]{1,64}$";

Json Text(std::string_view text) { return std::string(text); }

// A limit that is a number in YAML and in JSON alike.
void AddLimits(std::string_view minimum, std::string_view maximum, Json* schema) {
  if (!minimum.empty()) (*schema)["minimum"] = Json::parse(minimum);
  if (!maximum.empty()) (*schema)["maximum"] = Json::parse(maximum);
}

// Limits of durations and sizes cannot be said of a string; they go into the description.
std::string WithLimits(std::string_view sentence, std::string_view minimum,
                       std::string_view maximum) {
  std::string out(sentence);
  if (!minimum.empty() && !maximum.empty()) {
    out += " From " + std::string(minimum) + " to " + std::string(maximum) + ".";
  } else if (!minimum.empty()) {
    out += " At least " + std::string(minimum) + ".";
  } else if (!maximum.empty()) {
    out += " At most " + std::string(maximum) + ".";
  }
  return out;
}

Json Word(const Key& key) {
  if (key.names == nullptr) return {{"type", "string"}, {"pattern", kNamePattern}};
  return {{"enum", key.names()}};
}

// YAML 1.1 readers turn a bare `off` into false.
Json DurationOrOff() {
  return {{"oneOf", Json::array({{{"type", "string"}, {"pattern", kDurationPattern}},
                                 {{"enum", Json::array({"off", "false", false})}}})}};
}

Json Ranks() {
  const Json rank = {{"type", "integer"}, {"minimum", 0}};
  return {
      {"oneOf",
       Json::array({rank,
                    {{"type", "array"}, {"items", rank}, {"minItems", 1}, {"uniqueItems", true}},
                    {{"enum", Json::array({"any", "last", "all"})}}})}};
}

Json KeysSchema(std::span<const Key> keys, void* object);

Json TypeSchema(const Key& key, void* object) {
  Json schema;
  switch (key.type) {
    case KeyType::kText:
      return {{"type", "string"}, {"minLength", 1}};
    case KeyType::kName:
      return Word(key);
    case KeyType::kNames:
      return {{"type", "array"}, {"items", Word(key)}};
    case KeyType::kInteger:
      schema = {{"type", "integer"}};
      AddLimits(key.minimum, key.maximum, &schema);
      return schema;
    case KeyType::kIntegers: {
      Json element = {{"type", "integer"}};
      AddLimits(key.minimum, key.maximum, &element);
      return {{"type", "array"}, {"items", element}, {"minItems", 1}};
    }
    case KeyType::kNumber:
      schema = {{"type", "number"}};
      AddLimits(key.minimum, key.maximum, &schema);
      return schema;
    case KeyType::kDuration:
      return {{"type", "string"}, {"pattern", kDurationPattern}};
    case KeyType::kDurationOrOff:
      return DurationOrOff();
    case KeyType::kBytes:
      return {{"type", "string"}, {"pattern", kBytesPattern}};
    case KeyType::kDate:
      return {{"type", "string"}, {"pattern", kDatePattern}};
    case KeyType::kRanks:
      return Ranks();
    case KeyType::kParams:
      return {{"type", "object"}};
    case KeyType::kMap:
      return KeysSchema(key.keys, key.enter(object));
    case KeyType::kMaps:
      return {{"type", "array"}, {"items", KeysSchema(key.keys, key.enter(object))}};
  }
  SHAKEDOWN_ASSERT(false);
}

bool LimitsGoIntoWords(KeyType type) {
  return type == KeyType::kDuration || type == KeyType::kDurationOrOff || type == KeyType::kBytes;
}

// `object` is what the keys are stored in, holding its defaults.
Json KeysSchema(std::span<const Key> keys, void* object) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Key& key : keys) {
    Json schema = {{"description", LimitsGoIntoWords(key.type)
                                       ? WithLimits(key.sentence, key.minimum, key.maximum)
                                       : std::string(key.sentence)}};
    schema.update(TypeSchema(key, object));
    if (key.show_default != nullptr) {
      const std::string text = key.show_default(object);
      // Numbers and lists are written the same way in JSON; everything else is a text.
      if (!text.empty()) {
        const Json parsed = Json::parse(text, nullptr, false);
        schema["default"] = parsed.is_discarded() ? Json(text) : parsed;
      }
    }
    if (key.required) required.push_back(Text(key.name));
    properties[std::string(key.name)] = std::move(schema);
  }
  Json out = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  out["additionalProperties"] = false;
  return out;
}

Json ParamSchema(const ParamSpec& spec) {
  Json schema = {{"description", Text(spec.sentence)}};
  switch (spec.type) {
    case ParamType::kDuration:
    case ParamType::kBytes:
      schema["description"] = WithLimits(spec.sentence, spec.minimum, spec.maximum);
      schema["type"] = "string";
      schema["pattern"] = spec.type == ParamType::kDuration ? kDurationPattern : kBytesPattern;
      if (!spec.default_text.empty()) schema["default"] = Text(spec.default_text);
      return schema;
    case ParamType::kCount:
      schema["type"] = "integer";
      AddLimits(spec.minimum.empty() ? "0" : spec.minimum, spec.maximum, &schema);
      if (!spec.default_text.empty()) schema["default"] = Json::parse(spec.default_text);
      return schema;
    case ParamType::kChoice:
      schema["enum"] = Json::array();
      for (const std::string_view choice : spec.choices) schema["enum"].push_back(Text(choice));
      if (!spec.default_text.empty()) schema["default"] = Text(spec.default_text);
      return schema;
  }
  SHAKEDOWN_ASSERT(false);
}

// What holds for an element of `faults` that injects `fault`.
Json FaultRule(const Fault& fault) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const ParamSpec& spec : fault.params) {
    properties[std::string(spec.name)] = ParamSchema(spec);
    if (spec.default_text.empty() && !spec.optional) required.push_back(Text(spec.name));
  }
  Json with = {{"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) with["required"] = required;
  Json points = Json::array();
  for (const Point point : fault.points) points.push_back(Text(PointName(point)));
  Json at = {{"properties", {{"point", {{"enum", points}, {"default", points.at(0)}}}}}};
  if (fault.target == TargetKind::kRank) at["properties"]["worker"] = false;
  Json then = {{"description", Text(fault.summary)},
               {"properties", {{"with", std::move(with)}, {"at", std::move(at)}}}};
  if (!required.empty()) then["required"] = Json::array({"with"});
  return {{"if", {{"properties", {{"inject", {{"const", fault.full_name()}}}}}}},
          {"then", std::move(then)}};
}

std::string_view TypeWord(KeyType type) {
  switch (type) {
    case KeyType::kText:
      return "text";
    case KeyType::kName:
      return "name";
    case KeyType::kNames:
      return "list of names";
    case KeyType::kInteger:
      return "whole number";
    case KeyType::kIntegers:
      return "list of whole numbers";
    case KeyType::kNumber:
      return "number";
    case KeyType::kDuration:
      return "duration";
    case KeyType::kDurationOrOff:
      return "duration or `off`";
    case KeyType::kBytes:
      return "size";
    case KeyType::kDate:
      return "date";
    case KeyType::kRanks:
      return "ranks";
    case KeyType::kParams:
      return "keys";
    case KeyType::kMap:
      return "keys";
    case KeyType::kMaps:
      return "list of keys";
  }
  SHAKEDOWN_ASSERT(false);
}

std::string LimitsText(const Key& key) {
  if (!key.minimum.empty() && !key.maximum.empty()) {
    return std::string(key.minimum) + " to " + std::string(key.maximum);
  }
  if (!key.minimum.empty()) return "at least " + std::string(key.minimum);
  // Long lists (faults, points, checks) have a command of their own.
  constexpr size_t kShortList = 6;
  const auto names = key.names == nullptr ? std::vector<std::string>() : key.names();
  if (names.empty() || names.size() > kShortList) return "";
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + "`";
  return out;
}

void AddRows(std::span<const Key> keys, void* object, const std::string& path, std::string* out) {
  for (const Key& key : keys) {
    const bool list = key.type == KeyType::kMaps;
    const std::string name = path + std::string(key.name);
    std::string standard = "required";
    if (!key.required) {
      const std::string text = key.show_default == nullptr ? "" : key.show_default(object);
      standard = text.empty() ? "" : "`" + text + "`";
    }
    *out += "| `" + name + (list ? "[]" : "") + "` | " + std::string(TypeWord(key.type)) + " | " +
            LimitsText(key) + " | " + standard + " | " + std::string(key.sentence) + " |\n";
    if (key.enter != nullptr) {
      AddRows(key.keys, key.enter(object), name + (list ? "[]." : "."), out);
    }
  }
}

}  // namespace

Json ScenarioSchema() {
  Scenario defaults;
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Shakedown scenario"}};
  schema.update(KeysSchema(ScenarioKeys(), &defaults));
  Json rules = Json::array();
  for (const Fault* fault : FaultCatalog()) rules.push_back(FaultRule(*fault));
  schema["properties"]["faults"]["items"]["allOf"] = std::move(rules);
  return schema;
}

std::string ScenarioKeyTable() {
  Scenario defaults;
  std::string out =
      "| key | type | values | default | meaning |\n"
      "|---|---|---|---|---|\n";
  AddRows(ScenarioKeys(), &defaults, "", &out);
  return out;
}

}  // namespace shakedown
