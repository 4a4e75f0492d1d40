// What is removed from the checkpoint directory, and in which order.
#pragma once

#include <cstdint>

#include "harness/base/status.h"

namespace shakedown {

// Removes what failed or killed saves left: temporary files, and checkpoint files that got their
// name but no manifest. REQUIRES: nobody else is saving into the directory.
Status RemoveTemporaries(int directory_fd);

// What a bug does (Defect::kRotatesBeforeSaving).
void RemoveAllCheckpoints(int directory_fd);

// Keeps the newest `keep` (at least 1) checkpoints that are complete, `newest` among them, and
// removes older ones: the manifest first, so that no reader sees a manifest without its file. A
// checkpoint without manifest or file never pushes out one that has both.
// REQUIRES: `newest` is the step that the caller has just published.
Status RotateCheckpoints(int directory_fd, int keep, int64_t newest);

}  // namespace shakedown
