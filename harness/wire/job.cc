#include "harness/wire/job.h"

#include <set>

namespace shakedown {
namespace {

// One visitor serves both directions, so that a field cannot be written and not read.
template <typename Visitor, typename Job>
void Visit(Visitor& v, Job& job) {
  v("trainer", job.trainer);
  v("ranks", job.ranks);
  v("model", job.model);
  v("hidden", job.hidden);
  v("dropout", job.dropout);
  v("data", job.data);
  v("data_dir", job.data_dir);
  v("steps", job.steps);
  v("micro_batch", job.micro_batch);
  v("accumulation", job.accumulation);
  v("step_time_ns", job.step_time);
  v("seed", job.seed);
  v("learning_rate", job.learning_rate);
  v("warmup_steps", job.warmup_steps);
  v("weight_decay", job.weight_decay);
  v("bucket_bytes", job.bucket_bytes);
  v("workers", job.workers);
  v("prefetch", job.prefetch);
  v("worker_deadline_ns", job.worker_deadline);
  v("slow_data_warning_ns", job.slow_data_warning);
  v("checkpoint_every", job.checkpoint.every);
  v("checkpoint_mode", job.checkpoint.mode);
  v("checkpoint_keep", job.checkpoint.keep);
  v("collective_timeout_ns", job.collective_timeout);
  v("startup_timeout_ns", job.startup_timeout);
  v("watchdog_ns", job.watchdog);
  v("restart_policy", job.restart_policy);
  v("max_restarts", job.max_restarts);
  v("term_grace_ns", job.term_grace);
}

struct Writer {
  Json out = Json::object();
  template <typename T>
  void operator()(const char* name, const T& value) {
    out[name] = value;
  }
  void operator()(const char* name, const Nanoseconds& value) { out[name] = value.count(); }
  void operator()(const char* name, const std::optional<Nanoseconds>& value) {
    out[name] = value ? Json(value->count()) : Json(nullptr);
  }
  void operator()(const char* name, const CheckpointMode& value) {
    out[name] = std::string(ToString(value));
  }
  void operator()(const char* name, const RestartPolicy& value) {
    out[name] = std::string(ToString(value));
  }
};

struct Reader {
  const Json& in;
  std::set<std::string> known;
  std::string error;

  template <typename T>
  void operator()(const char* name, T& value) {
    known.insert(name);
    try {
      Get(in.at(name), value);
    } catch (const Json::exception&) {
      Wrong(name, in.contains(name) ? "of a wrong type" : "absent");
    } catch (const std::exception& e) {
      Wrong(name, e.what());
    }
  }
  void Wrong(const char* name, const char* what) {
    if (error.empty()) error = "field '" + std::string(name) + "': " + what;
  }
  template <typename T>
  static void Get(const Json& json, T& value) {
    value = json.get<T>();
  }
  static void Get(const Json& json, Nanoseconds& value) {
    value = Nanoseconds(json.get<int64_t>());
  }
  static void Get(const Json& json, std::optional<Nanoseconds>& value) {
    value = json.is_null() ? std::nullopt : std::optional(Nanoseconds(json.get<int64_t>()));
  }
  static void Get(const Json& json, CheckpointMode& value) {
    const auto text = json.get<std::string>();
    if (text != "sync" && text != "async") throw std::invalid_argument("not sync or async");
    value = text == "sync" ? CheckpointMode::kSync : CheckpointMode::kAsync;
  }
  static void Get(const Json& json, RestartPolicy& value) {
    const auto text = json.get<std::string>();
    if (text != "none" && text != "group") throw std::invalid_argument("not none or group");
    value = text == "none" ? RestartPolicy::kNone : RestartPolicy::kGroup;
  }
};

}  // namespace

std::string_view ToString(CheckpointMode mode) {
  return mode == CheckpointMode::kSync ? "sync" : "async";
}
std::string_view ToString(RestartPolicy policy) {
  return policy == RestartPolicy::kNone ? "none" : "group";
}

Json ToJson(const JobConfig& job) {
  Writer writer;
  Visit(writer, job);
  return writer.out;
}

Result<JobConfig> JobConfigFromJson(const Json& json) {
  if (!json.is_object()) return Fail("job configuration: not an object");
  JobConfig job;
  Reader reader{json, {}, {}};
  Visit(reader, job);
  if (!reader.error.empty()) return Fail("job configuration: " + reader.error);
  for (const auto& [key, value] : json.items()) {
    if (!reader.known.contains(key)) return Fail("job configuration: unknown field '" + key + "'");
  }
  return job;
}

}  // namespace shakedown
