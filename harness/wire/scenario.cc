#include "harness/wire/scenario.h"

#include <concepts>
#include <stdexcept>

#include "harness/base/digest.h"
#include "harness/wire/json.h"
#include "harness/wire/run_dir.h"

namespace shakedown {
namespace {

// Names of an enumeration's values, in order of the values.
template <typename Enum>
struct Names;
template <>
struct Names<Outcome> {
  static constexpr std::string_view kList[] = {"unaffected", "degrades", "recovers",
                                               "stops_cleanly"};
};
template <>
struct Names<HoldMode> {
  static constexpr std::string_view kList[] = {"auto", "none"};
};
template <>
struct Names<Target::Kind> {
  static constexpr std::string_view kList[] = {"list", "any", "last", "all"};
};

template <typename T, typename Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

// One visitor serves both directions, so that a field cannot be written and not read.
template <typename V, Is<Target> T>
void Visit(V& v, T& target) {
  v("kind", target.kind);
  v("ranks", target.ranks);
  v("worker", target.worker);
}

template <typename V, Is<FaultSpec> T>
void Visit(V& v, T& fault) {
  v("inject", fault.inject);
  v("with", fault.with);
  v("target", fault.target);
  v("attempt", fault.attempt);
  v("step", fault.step);
  v("point", fault.point);
  v("occurrence", fault.occurrence);
  v("committed", fault.committed);
  v("duration_ns", fault.duration);
  v("until", fault.until);
  v("hold", fault.hold);
}

template <typename V, Is<Culprit> T>
void Visit(V& v, T& culprit) {
  v("kind", culprit.kind);
  v("rank", culprit.rank);
  v("worker", culprit.worker);
  v("name", culprit.name);
}

template <typename V, Is<DiagnosisExpectation> T>
void Visit(V& v, T& diagnosis) {
  v("culprits", diagnosis.culprits);
  v("mechanism", diagnosis.mechanism);
}

template <typename V, Is<Expectation> T>
void Visit(V& v, T& expect) {
  v("outcome", expect.outcome);
  v("diagnosis", expect.diagnosis);
  v("detected_within_ns", expect.detected_within);
  v("timeout_fires", expect.timeout_fires);
  v("resume_from", expect.resume_from);
  v("recovery_budget_ns", expect.recovery_budget);
  v("lost_steps_budget", expect.lost_steps_budget);
  v("weights_tolerance", expect.weights_tolerance);
  v("restarts", expect.restarts);
  v("exit_witness_optional", expect.exit_witness_optional);
  v("verdict", expect.verdict);
  v("check", expect.check);
  v("reason", expect.reason);
  v("also_fails", expect.also_fails);
}

template <typename V, Is<Waiver> T>
void Visit(V& v, T& waiver) {
  v("check", waiver.check);
  v("reason", waiver.reason);
  v("until", waiver.until);
}

template <typename V, Is<Scenario> T>
void Visit(V& v, T& scenario) {
  v("name", scenario.name);
  v("summary", scenario.summary);
  v("path", scenario.path);
  v("classes", scenario.classes);
  v("job", scenario.job);
  v("faults", scenario.faults);
  v("expect", scenario.expect);
  v("waive", scenario.waive);
}

template <typename V, Is<Injection> T>
void Visit(V& v, T& injection) {
  v("id", injection.id);
  v("fault", injection.fault);
  v("with", injection.with);
  v("rank", injection.rank);
  v("worker", injection.worker);
  v("attempt", injection.attempt);
  v("step", injection.step);
  v("point", injection.point);
  v("occurrence", injection.occurrence);
  v("committed", injection.committed);
  v("duration_ns", injection.duration);
  v("until", injection.until);
  v("hold", injection.hold);
  v("level", injection.level);
  v("means", injection.means);
  v("better", injection.better);
}

template <typename V, Is<Plan> T>
void Visit(V& v, T& plan) {
  v("scenario", plan.scenario);
  v("seed", plan.seed);
  v("injections", plan.injections);
  v("hold_limit_ns", plan.hold_limit);
  v("private_fs_bytes", plan.private_fs_bytes);
  v("digest", plan.digest);
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    out_[name] = Encode(value);
  }
  template <typename T>
  static Json Encode(const T& value) {
    if constexpr (requires { Names<T>::kList; }) {
      return std::string(Names<T>::kList[static_cast<size_t>(value)]);
    } else if constexpr (requires(Writer & w) { Visit(w, value); }) {
      Writer writer;
      Visit(writer, value);
      return std::move(writer.out_);
    } else {
      return Json(value);
    }
  }
  static Json Encode(const Nanoseconds& value) { return value.count(); }
  static Json Encode(const Point& point) { return std::string(PointName(point)); }
  static Json Encode(const JobConfig& job) { return ToJson(job); }
  static Json Encode(const Params& params) {
    Json out = Json::object();
    for (const auto& [name, value] : params) {
      out[name] = std::visit([](const auto& v) { return Json(v); }, value);
    }
    return out;
  }
  template <typename T>
  static Json Encode(const std::optional<T>& value) {
    return value ? Encode(*value) : Json(nullptr);
  }
  template <typename T>
  static Json Encode(const std::vector<T>& values) {
    Json out = Json::array();
    for (const T& value : values) out.push_back(Encode(value));
    return out;
  }

 private:
  Json out_ = Json::object();
};

// Throws std::exception (the JSON library's, or its own); Read catches.
class Reader {
 public:
  explicit Reader(const Json& in) : in_(in) {}
  template <typename T>
  void operator()(const char* name, T& value) {
    const auto field = in_.find(name);
    if (field == in_.end()) throw std::invalid_argument(std::string("no field ") + name);
    try {
      Decode(*field, value);
    } catch (const Json::exception&) {
      throw std::invalid_argument(std::string("field ") + name + " is of a wrong type");
    }
  }
  template <typename T>
  static void Decode(const Json& json, T& value) {
    if constexpr (requires { Names<T>::kList; }) {
      DecodeEnum(json, value);
    } else if constexpr (requires(Reader & r) { Visit(r, value); }) {
      if (!json.is_object()) throw std::invalid_argument("not an object");
      Reader reader(json);
      Visit(reader, value);
    } else {
      value = json.get<T>();
    }
  }
  static void Decode(const Json& json, Nanoseconds& value) {
    value = Nanoseconds(json.get<int64_t>());
  }
  static void Decode(const Json& json, Point& point) {
    const auto name = json.get<std::string>();
    const auto found = FindPoint(name);
    if (!found && !name.empty()) throw std::invalid_argument("no point '" + name + "'");
    point = found.value_or(Point::kNone);
  }
  static void Decode(const Json& json, JobConfig& job) {
    const auto read = JobConfigFromJson(json);
    if (!read) throw std::invalid_argument(read.error().message);
    job = *read;
  }
  static void Decode(const Json& json, Params& params) {
    params.clear();
    if (!json.is_object()) throw std::invalid_argument("parameters are not an object");
    for (const auto& [name, value] : json.items()) {
      if (value.is_number_integer()) {
        params[name] = value.get<int64_t>();
      } else if (value.is_number()) {
        params[name] = value.get<double>();
      } else {
        params[name] = value.get<std::string>();
      }
    }
  }
  template <typename T>
  static void Decode(const Json& json, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) Decode(json, value.emplace());
  }
  template <typename T>
  static void Decode(const Json& json, std::vector<T>& values) {
    if (!json.is_array()) throw std::invalid_argument("not a list");
    values.clear();
    for (const Json& element : json) Decode(element, values.emplace_back());
  }

 private:
  template <typename Enum>
  static void DecodeEnum(const Json& json, Enum& value) {
    const auto text = json.get<std::string>();
    size_t index = 0;
    for (const std::string_view name : Names<Enum>::kList) {
      if (name == text) {
        value = static_cast<Enum>(index);
        return;
      }
      ++index;
    }
    throw std::invalid_argument("unknown word '" + text + "'");
  }

  const Json& in_;
};

template <typename T>
Result<T> Read(const Json& json, std::string_view what) {
  T value;
  try {
    Reader::Decode(json, value);
  } catch (const std::exception& e) {
    return Fail("cannot read a " + std::string(what) + " from JSON: " + e.what());
  }
  return value;
}

}  // namespace

std::string_view ToString(Outcome outcome) {
  return Names<Outcome>::kList[static_cast<size_t>(outcome)];
}

Json ToJson(const Scenario& scenario) { return Writer::Encode(scenario); }
Json ToJson(const Plan& plan) {
  Json out = {{"schema_version", kSchemaVersion}};
  out.update(Writer::Encode(plan));
  return out;
}
Json ToJson(const Culprit& culprit) {
  Json out = {{"kind", culprit.kind}};
  out["rank"] = Writer::Encode(culprit.rank);
  if (culprit.worker) out["worker"] = *culprit.worker;
  out["name"] = culprit.name.empty() ? Json(nullptr) : Json(culprit.name);
  return out;
}
Json ToJson(const Params& params) { return Writer::Encode(params); }

Result<Plan> PlanFromJson(const Json& json) { return Read<Plan>(json, "plan"); }
Result<Scenario> ScenarioFromJson(const Json& json) { return Read<Scenario>(json, "scenario"); }

std::string PlanDigest(const Plan& plan) {
  Json json = ToJson(plan);
  json.erase("digest");
  json["scenario"].erase("path");
  json["scenario"]["job"].erase("data_dir");
  return ToHex(Xxh3Of(DumpJson(json)));
}

}  // namespace shakedown
