#include "analysis/report/json.h"

#include "analysis/report/summary.h"

namespace shakedown::report {
namespace {

// schema_version stands first, whoever made the object.
Json WithVersion(const Json& object) {
  Json out = Json::object();
  out["schema_version"] = kSchemaVersion;
  for (const auto& [key, value] : object.items()) {
    if (key != "schema_version") out[key] = value;
  }
  return out;
}

Json Runs(const std::vector<RunVerdict>& runs) {
  Json json = Json::array();
  for (const RunVerdict& run : runs) json.push_back(RunJson(run));
  return json;
}

}  // namespace

Json RunJson(const RunVerdict& run) { return WithVersion(ToJson(run)); }

Json RepeatJson(const RepeatResult& repeat) {
  Json json = WithVersion(ToJson(repeat.merged));
  json["runs"] = Runs(repeat.runs);
  json["wall_ms"] = repeat.wall_ms;
  return json;
}

Json SuiteJson(const SuiteResult& suite) {
  Json json = Json::object();
  json["schema_version"] = kSchemaVersion;
  json["suite"] = suite.suite;
  json["verdict"] = std::string(ToString(suite.verdict));
  json["dirty"] = suite.dirty;
  json["runs"] = Runs(suite.runs);
  json["counts"] = Json::object();
  for (const auto& [name, count] : CountVerdicts(suite.runs)) json["counts"][name] = count;
  json["levels"] = Json::object();
  for (const auto& [level, count] : CountLevels(suite.runs)) json["levels"][level] = count;
  json["wall_ms"] = suite.wall_ms;
  return json;
}

Json DiagnosisJson(const Diagnosis& diagnosis) { return WithVersion(ToJson(diagnosis)); }

}  // namespace shakedown::report
