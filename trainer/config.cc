#include "trainer/config.h"

#include <charconv>
#include <string_view>

#include "harness/base/file.h"
#include "harness/wire/environment.h"

namespace shakedown {
namespace {

// Far above any real group on one machine; a typing error would make Gloo wait for peers that never
// come.
constexpr int kMostRanks = 4096;

Result<int> IntVariable(const EnvironmentLookup& lookup, const char* name, int least, int most,
                        std::optional<int> otherwise) {
  const char* text = lookup(name);
  if (text == nullptr && otherwise) return *otherwise;
  if (text == nullptr) {
    return Fail(std::string("environment variable ") + name +
                " is not set; ranks are started by shakedown-launch, or by hand with it");
  }
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.begin(), view.end(), value);
  if (error != std::errc() || end != view.end() || value < least || value > most) {
    return Fail(std::string("environment variable ") + name + " is '" + text +
                "', not a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

Result<std::filesystem::path> PathVariable(const EnvironmentLookup& lookup, const char* name) {
  const char* text = lookup(name);
  if (text == nullptr || *text == '\0') {
    return Fail(std::string("environment variable ") + name + " is not set");
  }
  return std::filesystem::path(text);
}

// What is wrong with the job, or "".
std::string Complaint(const JobConfig& job, const RankEnvironment& environment) {
  if (job.model != "mlp") return "model '" + job.model + "' is unknown; there is: mlp";
  if (job.ranks != environment.world_size) {
    return "it is a job of " + std::to_string(job.ranks) + " ranks, but WORLD_SIZE is " +
           std::to_string(environment.world_size);
  }
  for (const int width : job.hidden) {
    if (width < 1) return "a hidden layer has a width of " + std::to_string(width);
  }
  if (!(job.dropout >= 0 && job.dropout < 1)) return "dropout is not in [0, 1)";
  if (job.steps < 1) return "steps is less than 1";
  if (job.micro_batch < 1) return "micro_batch is less than 1";
  if (job.accumulation < 1) return "accumulation is less than 1";
  if (job.warmup_steps < 0) return "warmup_steps is negative";
  if (!(job.learning_rate > 0)) return "learning_rate is not positive";
  if (!(job.weight_decay >= 0)) return "weight_decay is negative";
  if (job.bucket_bytes < 1) return "bucket_bytes is less than 1";
  if (job.workers < 1) return "workers is less than 1";
  if (job.prefetch < 1) return "prefetch is less than 1";
  if (job.step_time.count() < 0) return "step_time is negative";
  if (job.checkpoint.every < 0) return "checkpoint.every is negative";
  if (job.checkpoint.keep < 1) return "checkpoint.keep is less than 1";
  if (job.collective_timeout < Milliseconds(1)) return "the collective timeout is below 1 ms";
  if (job.startup_timeout < Milliseconds(1)) return "the start-up timeout is below 1 ms";
  if (environment.micro_batch_parts > job.micro_batch) {
    return "SHAKEDOWN_MICRO_BATCH_PARTS is " + std::to_string(environment.micro_batch_parts) +
           ", more than the " + std::to_string(job.micro_batch) + " samples of a micro-batch";
  }
  return "";
}

}  // namespace

Result<RankEnvironment> ReadRankEnvironment(const EnvironmentLookup& lookup) {
  RankEnvironment out;
  struct Number {
    const char* name;
    int least;
    int most;
    std::optional<int> otherwise;
    int* to;
  };
  int heartbeat = -1;
  const Number numbers[] = {
      {env::kWorldSize, 1, kMostRanks, std::nullopt, &out.world_size},
      {env::kRank, 0, kMostRanks - 1, std::nullopt, &out.rank},
      {env::kRestartCount, 0, 1 << 20, 0, &out.attempt},
      {env::kHeartbeatFd, 0, 1 << 20, -1, &heartbeat},
      {env::kMicroBatchParts, 1, 1 << 20, 1, &out.micro_batch_parts},
  };
  for (const Number& number : numbers) {
    const Result<int> value =
        IntVariable(lookup, number.name, number.least, number.most, number.otherwise);
    if (!value) return tl::unexpected<Error>(value.error());
    *number.to = *value;
  }
  if (out.rank >= out.world_size) {
    return Fail("RANK is " + std::to_string(out.rank) + ", but WORLD_SIZE is " +
                std::to_string(out.world_size));
  }
  if (heartbeat >= 0) out.heartbeat_fd = heartbeat;
  for (const auto& [name, to] :
       {std::pair{env::kRankDir, &out.rank_dir}, std::pair{env::kStoreFile, &out.store_file}}) {
    Result<std::filesystem::path> path = PathVariable(lookup, name);
    if (!path) return tl::unexpected<Error>(path.error());
    *to = std::move(*path);
  }
  return out;
}

Result<RankFlags> ParseRankFlags(std::span<const std::string> arguments) {
  RankFlags flags;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& flag = arguments[i];
    std::filesystem::path* to = flag == "--config"           ? &flags.config
                                : flag == "--checkpoint-dir" ? &flags.checkpoint_dir
                                                             : nullptr;
    if (to == nullptr) return Fail("unknown flag '" + flag + "'");
    if (i + 1 == arguments.size()) return Fail("flag " + flag + " has no value");
    *to = arguments[i + 1];
  }
  if (flags.config.empty() || flags.checkpoint_dir.empty()) {
    return Fail("usage: shakedown-trainer --config job.json --checkpoint-dir DIR");
  }
  return flags;
}

Result<JobConfig> ReadJob(const std::filesystem::path& path, const RankEnvironment& environment) {
  const Result<std::string> text = ReadFile(path, 16 << 20);
  if (!text) return Wrap("cannot read the job", text.error());
  const Result<Json> json = ParseJson(*text);
  if (!json) return Wrap("cannot read the job in '" + path.native() + "'", json.error());
  Result<JobConfig> job = JobConfigFromJson(*json);
  if (!job) return Wrap("cannot read the job in '" + path.native() + "'", job.error());
  const std::string complaint = Complaint(*job, environment);
  if (!complaint.empty())
    return Fail("cannot run the job in '" + path.native() + "': " + complaint);
  return job;
}

}  // namespace shakedown
