// Which checkpoint a training resumes from.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/base/status.h"
#include "harness/wire/checkpoint_format.h"

namespace shakedown {

// A checkpoint that was passed over, and why.
using CheckpointRefused =
    std::function<void(int64_t step, const std::string& file, const std::string& reason)>;

// The newest checkpoint whose file has the manifest's digest, falling back to older ones; nullopt
// when the directory holds no manifest at all. When there are manifests and none of them verifies,
// an Error: starting again from step 0 would silently throw the training away.
Result<std::optional<CheckpointManifest>> SelectCheckpoint(int directory_fd,
                                                           const CheckpointRefused& refused);

// The file's bytes, verified against its manifest; also returns the manifest. Reads again: what was
// selected a while ago may have been changed since.
struct LoadedCheckpoint {
  CheckpointManifest manifest;
  std::string bytes;
};
Result<LoadedCheckpoint> ReadCheckpoint(int directory_fd, int64_t step);

}  // namespace shakedown
