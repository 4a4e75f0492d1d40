#include "analysis/diagnosis/diagnosis.h"

#include "analysis/diagnosis/combine.h"
#include "analysis/diagnosis/detector.h"

namespace shakedown {
namespace {

Json CulpritsJson(const std::vector<Culprit>& culprits) {
  Json json = Json::array();
  for (const Culprit& culprit : culprits) json.push_back(ToJson(culprit));
  return json;
}

Json WhereJson(const Where& where) { return {{"file", where.file}, {"line", where.line}}; }

// Reads fields and remembers the first that has a wrong type; absent and null keep the default.
class Reader {
 public:
  explicit Reader(std::string& error) : error_(error) {}

  void Get(const Json& json, const char* key, std::string& value) {
    Take(json, key, value, &Json::is_string, "a text");
  }
  void Get(const Json& json, const char* key, double& value) {
    Take(json, key, value, &Json::is_number, "a number");
  }
  void Get(const Json& json, const char* key, int& value) {
    const Json& field = Field(json, key);
    if (field.is_null()) return;
    const auto number = IntField(json, key);
    if (!number || *number < INT32_MIN || *number > INT32_MAX) return Wrong(key, "a small integer");
    value = static_cast<int>(*number);
  }
  void Get(const Json& json, const char* key, std::optional<int>& value) {
    if (Field(json, key).is_null()) return;
    value = 0;
    Get(json, key, *value);
  }
  template <typename T>
  void Get(const Json& json, const char* key, std::vector<T>& list) {
    const Json& field = Field(json, key);
    if (field.is_null()) return;
    if (!field.is_array()) return Wrong(key, "a list");
    for (const Json& item : field) {
      list.emplace_back();
      Read(item, key, list.back());
    }
  }
  void Get(const Json& json, const char* key, Where& where) {
    const Json& field = Field(json, key);
    if (field.is_null()) return;
    Get(field, "file", where.file);
    Get(field, "line", where.line);
  }

 private:
  template <typename T>
  void Take(const Json& json, const char* key, T& value, bool (Json::*is)() const noexcept,
            const char* wanted) {
    const Json& field = Field(json, key);
    if (field.is_null()) return;
    if (!(field.*is)()) return Wrong(key, wanted);
    value = field.get<T>();
  }

  void Read(const Json& json, const char* key, std::string& value) {
    if (!json.is_string()) return Wrong(key, "a list of texts");
    value = json.get<std::string>();
  }
  void Read(const Json& json, const char* key, Culprit& culprit) {
    if (!json.is_object()) return Wrong(key, "a list of objects");
    Get(json, "kind", culprit.kind);
    Get(json, "rank", culprit.rank);
    Get(json, "worker", culprit.worker);
    Get(json, "name", culprit.name);
  }
  void Read(const Json& json, const char* key, ChainLink& link) {
    if (!json.is_object()) return Wrong(key, "a list of objects");
    std::string role;
    Get(json, "t_ms", link.t_ms);
    Get(json, "role", role);
    for (const ChainRole value : {ChainRole::kRoot, ChainRole::kCascade, ChainRole::kTeardown}) {
      if (role == ToString(value)) link.role = value;
    }
    Get(json, "attempt", link.attempt);
    Get(json, "rank", link.rank);
    Get(json, "what", link.what);
    Get(json, "where", link.where);
  }
  void Read(const Json& json, const char* key, Suffered& suffered) {
    if (!json.is_object()) return Wrong(key, "a list of objects");
    Get(json, "attempt", suffered.attempt);
    Get(json, "rank", suffered.rank);
    Get(json, "what", suffered.what);
    Get(json, "where", suffered.where);
  }
  void Read(const Json& json, const char* key, AlsoFound& also) {
    if (!json.is_object()) return Wrong(key, "a list of objects");
    Get(json, "culprits", also.culprits);
    Get(json, "mechanism", also.mechanism);
    Get(json, "what", also.what);
    Get(json, "where", also.where);
  }

  void Wrong(const char* key, const char* wanted) {
    if (error_.empty()) error_ = std::string("diagnosis: field '") + key + "' is not " + wanted;
  }

  std::string& error_;
};

}  // namespace

std::string_view ToString(ChainRole role) {
  switch (role) {
    case ChainRole::kRoot:
      return "root";
    case ChainRole::kCascade:
      return "cascade";
    case ChainRole::kTeardown:
      return "teardown";
  }
  return "cascade";
}

Json ToJson(const Diagnosis& diagnosis) {
  Json json = Json::object();
  json["culprits"] = CulpritsJson(diagnosis.culprits);
  json["mechanism"] = diagnosis.mechanism;
  json["chain"] = Json::array();
  for (const ChainLink& link : diagnosis.chain) {
    json["chain"].push_back({{"t_ms", link.t_ms},
                             {"role", std::string(ToString(link.role))},
                             {"attempt", link.attempt},
                             {"rank", link.rank ? Json(*link.rank) : Json(nullptr)},
                             {"what", link.what},
                             {"where", WhereJson(link.where)}});
  }
  json["cascade"] = Json::array();
  for (const Suffered& suffered : diagnosis.cascade) {
    json["cascade"].push_back({{"attempt", suffered.attempt},
                               {"rank", suffered.rank},
                               {"what", suffered.what},
                               {"where", WhereJson(suffered.where)}});
  }
  json["also"] = Json::array();
  for (const AlsoFound& also : diagnosis.also) {
    json["also"].push_back({{"culprits", CulpritsJson(also.culprits)},
                            {"mechanism", also.mechanism},
                            {"what", also.what},
                            {"where", WhereJson(also.where)}});
  }
  json["confidence"] = diagnosis.confidence;
  json["reasons"] = diagnosis.reasons;
  json["missing"] = diagnosis.missing;
  json["runbook"] = diagnosis.runbook.empty() ? Json(nullptr) : Json(diagnosis.runbook);
  json["isolation"] = diagnosis.isolation.empty() ? Json(nullptr) : Json(diagnosis.isolation);
  return json;
}

Result<Diagnosis> DiagnosisFromJson(const Json& json) {
  if (!json.is_object()) return Fail("diagnosis: not an object");
  Diagnosis diagnosis;
  std::string error;
  Reader reader(error);
  reader.Get(json, "culprits", diagnosis.culprits);
  reader.Get(json, "mechanism", diagnosis.mechanism);
  reader.Get(json, "chain", diagnosis.chain);
  reader.Get(json, "cascade", diagnosis.cascade);
  reader.Get(json, "also", diagnosis.also);
  reader.Get(json, "confidence", diagnosis.confidence);
  reader.Get(json, "reasons", diagnosis.reasons);
  reader.Get(json, "missing", diagnosis.missing);
  reader.Get(json, "runbook", diagnosis.runbook);
  reader.Get(json, "isolation", diagnosis.isolation);
  if (!error.empty()) return Fail(error);
  return diagnosis;
}

std::string DescribeCulprits(const std::vector<Culprit>& culprits) {
  if (culprits.empty()) return "nobody";
  std::string text;
  for (const Culprit& culprit : culprits) {
    if (!text.empty()) text += ", ";
    const std::string rank = culprit.rank ? std::to_string(*culprit.rank) : "?";
    if (culprit.worker) {
      text += "worker " + std::to_string(*culprit.worker) + " of rank " + rank;
    } else if (culprit.kind == "rank") {
      text += "rank " + rank;
    } else {
      text += culprit.kind;
      if (culprit.rank) text += " of rank " + rank;
      if (!culprit.name.empty()) text += " " + culprit.name;
    }
  }
  return text;
}

Diagnosis Diagnose(const ObservedEvidence& evidence) {
  std::vector<diagnosis::Findings> findings;
  for (const diagnosis::Detector* detector : diagnosis::Detectors()) {
    findings.push_back(detector->detect(evidence));
  }
  return diagnosis::Combine(evidence, std::move(findings));
}

}  // namespace shakedown
