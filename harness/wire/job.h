// The configuration of the reference job: what the scenario's `job:` says, completed with defaults.
// The controller writes it to job.json in the run directory; the launcher, the trainer and the
// checks read it from there. Nothing in it says what will be broken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/json.h"

namespace shakedown {

enum class CheckpointMode { kSync, kAsync };
enum class RestartPolicy { kNone, kGroup };

struct CheckpointConfig {
  int every = 10;  // steps; 0: never
  CheckpointMode mode = CheckpointMode::kAsync;
  int keep = 3;  // complete checkpoints kept; at least 1
  bool operator==(const CheckpointConfig&) const = default;
};

struct JobConfig {
  std::string trainer = "reference";
  int ranks = 3;
  std::string model = "mlp";
  std::vector<int> hidden = {256, 128};  // widths between input and output
  double dropout = 0.1;
  // A listed data set ("digits") or a directory with an IDX pair. `data_dir` is what it resolved
  // to.
  std::string data = "digits";
  std::string data_dir;
  int steps = 60;
  int micro_batch = 8;   // samples per rank and micro-batch
  int accumulation = 2;  // micro-batches per step
  // Timing model: a step takes at least this long. It changes no bit of the result.
  Nanoseconds step_time{0};
  uint64_t seed = 1;  // the rank's generator starts from seed + 1 + rank, weights from seed
  // Per 32 samples of the global batch (linear scaling): see LearningRate in schedule.h.
  double learning_rate = 1e-3;
  int warmup_steps = 10;
  double weight_decay = 0.01;
  int64_t bucket_bytes = 64 << 10;                       // cap of a gradient bucket
  int workers = 1;                                       // data workers per rank
  int prefetch = 2;                                      // micro-batches a worker may be ahead
  Nanoseconds worker_deadline{std::chrono::seconds(5)};  // then the worker is replaced
  Nanoseconds slow_data_warning{std::chrono::milliseconds(500)};  // then WARNING data.slow
  CheckpointConfig checkpoint;
  Nanoseconds collective_timeout{std::chrono::seconds(10)};
  Nanoseconds startup_timeout{std::chrono::seconds(60)};  // launch until all ranks are ready
  std::optional<Nanoseconds> watchdog;  // no step completed anywhere for this long; nullopt: off
  RestartPolicy restart_policy = RestartPolicy::kGroup;
  int max_restarts = 3;                             // over all ranks together
  Nanoseconds term_grace{std::chrono::seconds(2)};  // SIGTERM to SIGKILL

  int64_t global_batch() const { return int64_t{1} * ranks * micro_batch * accumulation; }
  bool operator==(const JobConfig&) const = default;
};

std::string_view ToString(CheckpointMode mode);
std::string_view ToString(RestartPolicy policy);

// Durations are written as integers of nanoseconds under names that end in _ns.
Json ToJson(const JobConfig& job);
// Unknown fields are errors: a launcher and a trainer of another version must not run half a job.
Result<JobConfig> JobConfigFromJson(const Json& json);

}  // namespace shakedown
