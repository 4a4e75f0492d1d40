// The seal: name, size, records and SHA-256 of every file of evidence, so that a later change is
// seen. What is absent when it is made counts against the job; what is absent or changed afterwards
// makes a verdict inconclusive.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/base/status.h"
#include "harness/wire/json.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

// Regular files below `directory`, links not followed, sorted by name relative to the run.
Result<Json> SealFiles(const RunDir& run, const std::filesystem::path& directory);

class Seal {
 public:
  explicit Seal(const RunDir& run) : run_(run) {}
  // The attempt has ended and its logs are drained.
  Status Attempt(int attempt);
  // The run has ended: seals the rest and writes seal.json, atomically.
  Status Run();

 private:
  RunDir run_;
  Json attempts_ = Json::array();
};

}  // namespace shakedown
