// Publishing a checkpoint: at every instant, also after a power cut, a reader finds either a
// complete checkpoint or none; never half of one under a name that counts.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "harness/base/status.h"
#include "harness/wire/checkpoint_format.h"

namespace shakedown {

// The whole checkpoint in memory. The manifest is complete but for file, bytes and digest, which
// publishing fills in.
struct SerializedCheckpoint {
  std::string bytes;
  CheckpointManifest manifest;
};

// Which operation on the disk failed: "space", "create", "write", "fsync", "rename",
// "fsync directory"; with "manifest " in front when it was the manifest's.
struct PublishError {
  std::string operation;
  Error error;
};

// Writes the file under a temporary name, fsyncs it, renames it and fsyncs the directory; then the
// manifest in the same way. Only with the manifest is it a checkpoint. Passes the fault points
// checkpoint.write to checkpoint.publish. On failure the torn temporary file stays, as after a
// kill: RemoveTemporaries (retain.h) takes it away before the next save. `directory_fd` stays the
// caller's.
tl::expected<CheckpointManifest, PublishError> PublishCheckpoint(int directory_fd,
                                                                 SerializedCheckpoint checkpoint);

}  // namespace shakedown
