// The JSON Schema accepts what the parser accepts, and refuses what it refuses for one key alone.
// The validator here knows just the words that the schema uses, and fails on any other.
#include "harness/scenario/schema.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "harness/base/file.h"
#include "harness/scenario/library.h"

namespace shakedown {
namespace {

// As a YAML 1.2 core reader sees it: quoted is text, the rest what it looks like.
Json FromYaml(const YAML::Node& node) {
  if (node.IsMap()) {
    Json out = Json::object();
    for (const auto& entry : node) out[entry.first.as<std::string>()] = FromYaml(entry.second);
    return out;
  }
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const auto& element : node) out.push_back(FromYaml(element));
    return out;
  }
  if (node.IsNull()) return nullptr;
  const auto text = node.as<std::string>();
  if (node.Tag() == "!") return text;
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(text);
}

bool HasType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  ADD_FAILURE() << "type " << type;
  return false;
}

// Empty when `value` is valid.
std::string Refuse(const Json& schema, const Json& value, const std::string& path) {
  if (schema.is_boolean()) return schema.get<bool>() ? "" : path + ": not allowed";
  static const std::set<std::string> kKnown = {"$schema",  "title",       "description",
                                               "default",  "type",        "properties",
                                               "required", "pattern",     "additionalProperties",
                                               "enum",     "const",       "items",
                                               "minItems", "uniqueItems", "minLength",
                                               "minimum",  "maximum",     "oneOf",
                                               "allOf",    "if",          "then"};
  for (const auto& [word, unused] : schema.items()) {
    if (!kKnown.contains(word)) return path + ": the schema uses '" + word + "'";
  }
  const auto has = [&](const char* word) { return schema.contains(word); };
  if (has("type") && !HasType(value, schema["type"])) return path + ": type";
  if (has("const") && value != schema["const"]) return path + ": const";
  if (has("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    return path + ": enum";
  }
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (has("minLength") && text.size() < schema["minLength"]) return path + ": minLength";
    if (has("pattern") &&
        !std::regex_search(text, std::regex(schema["pattern"].get<std::string>()))) {
      return path + ": pattern";
    }
  }
  if (value.is_number()) {
    if (has("minimum") && value < schema["minimum"]) return path + ": minimum";
    if (has("maximum") && value > schema["maximum"]) return path + ": maximum";
  }
  if (value.is_array()) {
    if (has("minItems") && value.size() < schema["minItems"]) return path + ": minItems";
    for (size_t i = 0; has("items") && i < value.size(); ++i) {
      auto wrong = Refuse(schema["items"], value[i], path + "." + std::to_string(i));
      if (!wrong.empty()) return wrong;
    }
  }
  if (value.is_object()) {
    if (has("required")) {
      for (const Json& key : schema["required"]) {
        if (!value.contains(key.get<std::string>())) return path + ": required " + key.dump();
      }
    }
    for (const auto& [key, element] : value.items()) {
      if (has("properties") && schema["properties"].contains(key)) {
        auto wrong = Refuse(schema["properties"][key], element, path + "." + key);
        if (!wrong.empty()) return wrong;
      } else if (has("additionalProperties") && schema["additionalProperties"] == false) {
        return path + ": additional " + key;
      }
    }
  }
  if (has("oneOf")) {
    const auto valid = std::ranges::count_if(
        schema["oneOf"], [&](const Json& one) { return Refuse(one, value, path).empty(); });
    if (valid != 1) return path + ": oneOf";
  }
  if (has("allOf")) {
    for (const Json& all : schema["allOf"]) {
      auto wrong = Refuse(all, value, path);
      if (!wrong.empty()) return wrong;
    }
  }
  if (has("if") && Refuse(schema["if"], value, path).empty()) {
    return Refuse(schema["then"], value, path);
  }
  return "";
}

std::string RefuseText(const std::string& yaml) {
  return Refuse(ScenarioSchema(), FromYaml(YAML::Load(yaml)), "");
}

std::string ReadRankKilled() {
  const auto text = ReadFile(ScenarioFolder() / "smoke/rank_killed.yaml");
  EXPECT_TRUE(text);
  return text.value_or("");
}

TEST(Schema, AcceptsEveryScenarioThatShips) {
  for (const auto& file : ScenarioFiles(ScenarioFolder())) {
    const auto text = ReadFile(file);
    ASSERT_TRUE(text);
    EXPECT_EQ(RefuseText(*text), "") << file;
  }
}

TEST(Schema, RefusesWhatTheParserRefuses) {
  const auto refuse = [](const std::string& from, const std::string& to) {
    std::string text = ReadRankKilled();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return RefuseText(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(refuse("steps: 60", "stepz: 60"), ".job: additional stepz");
  EXPECT_EQ(refuse("steps: 60", "steps: many"), ".job.steps: type");
  EXPECT_EQ(refuse("ranks: 3", "ranks: 0"), ".job.ranks: minimum");
  EXPECT_EQ(refuse("step_time: 20ms", "step_time: 20"), ".job.step_time: type");
  EXPECT_EQ(refuse("inject: rank.kill", "inject: rank.kil"), ".faults.0.inject: enum");
  EXPECT_EQ(refuse("signal: KILL", "signal: NONE"), ".faults.0.with.signal: enum");
  EXPECT_EQ(refuse("point: collective.enter", "point: worker.read"), ".faults.0.at.point: enum");
  EXPECT_EQ(refuse("rank: 1, step", "worker: 0, rank: 1, step"),
            ".faults.0.at.worker: not allowed");
  EXPECT_EQ(refuse("  outcome: recovers\n", ""), ".expect: required \"outcome\"");
}

TEST(Schema, StatesTheDefaultsOfTheStructures) {
  const Json schema = ScenarioSchema();
  const Json& job = schema["properties"]["job"]["properties"];
  EXPECT_EQ(job["ranks"]["default"], 3);
  EXPECT_EQ(job["hidden"]["default"], (Json{256, 128}));
  EXPECT_EQ(job["bucket_size"]["default"], "64KiB");
  EXPECT_EQ(job["watchdog"]["default"], "off");
  EXPECT_EQ(job["checkpoint"]["properties"]["mode"]["default"], "async");
  EXPECT_FALSE(job["file"].contains("default"));
}

TEST(Schema, TheTableInTheReadmeIsTheOneItPrints) {
  const auto readme = ReadFile(ScenarioFolder() / "README.md");
  ASSERT_TRUE(readme);
  EXPECT_NE(readme->find(ScenarioKeyTable()), std::string::npos)
      << "put the output of `shakedown schema --markdown` into scenarios/README.md";
}

}  // namespace
}  // namespace shakedown
