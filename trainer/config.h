// What a rank is told: two flags, the environment of its launcher, and job.json.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "harness/base/status.h"
#include "harness/wire/job.h"

namespace shakedown {

// Value of an environment variable, or null; ::getenv in the program.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// From the environment (names: harness/wire/environment.h).
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int attempt = 0;
  std::filesystem::path rank_dir;    // log.jsonl, ledger.bin and the rest go there
  std::filesystem::path store_file;  // FileStore of this attempt
  std::optional<int> heartbeat_fd;
  int micro_batch_parts = 1;  // begin with micro-batches split into so many parts
};
Result<RankEnvironment> ReadRankEnvironment(const EnvironmentLookup& lookup);

struct RankFlags {
  std::filesystem::path config;          // job.json
  std::filesystem::path checkpoint_dir;  // exists already
};
// `arguments` without the program's name.
Result<RankFlags> ParseRankFlags(std::span<const std::string> arguments);

// Reads and checks the job: what this trainer cannot run is an Error here and not in the middle of
// training.
Result<JobConfig> ReadJob(const std::filesystem::path& path, const RankEnvironment& environment);

}  // namespace shakedown
