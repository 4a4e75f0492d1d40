#include "trainer/checkpoint/retain.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "harness/wire/checkpoint_format.h"

namespace shakedown {
namespace {

Status Remove(int directory_fd, const std::string& name) {
  if (::unlinkat(directory_fd, name.c_str(), 0) != 0 && errno != ENOENT) {
    return FailErrno("remove", name);
  }
  return {};
}

// Steps with both a manifest and a file, oldest first.
std::vector<int64_t> PairedSteps(const CheckpointListing& listing) {
  std::set<std::string> names;
  for (const auto& file : listing.files) names.insert(file.name);
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    const auto step = CheckpointStepOf(name);
    if (step && name == CheckpointManifestName(*step) &&
        names.contains(CheckpointFileName(*step))) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

Status RemoveTemporaries(int directory_fd) {
  const Result<CheckpointListing> listing = ListCheckpoints(directory_fd);
  if (!listing) return tl::unexpected<Error>(listing.error());
  const std::vector<int64_t> paired = PairedSteps(*listing);
  for (const auto& file : listing->files) {
    const auto step = CheckpointStepOf(file.name);
    const bool orphan = step && file.name == CheckpointFileName(*step) &&
                        !std::binary_search(paired.begin(), paired.end(), *step);
    if (orphan || file.name.starts_with(kCheckpointTemporaryPrefix)) {
      SHAKEDOWN_TRY(Remove(directory_fd, file.name));
    }
  }
  return {};
}

void RemoveAllCheckpoints(int directory_fd) {
  const Result<CheckpointListing> listing = ListCheckpoints(directory_fd);
  if (!listing) return;
  for (const auto& file : listing->files) (void)Remove(directory_fd, file.name);
}

Status RotateCheckpoints(int directory_fd, int keep, int64_t newest) {
  SHAKEDOWN_ASSERT(keep >= 1);
  const Result<CheckpointListing> listing = ListCheckpoints(directory_fd);
  if (!listing) return tl::unexpected<Error>(listing.error());
  std::vector<int64_t> steps = PairedSteps(*listing);
  // A later step than the one just saved is of a training that was refused at the resume; it must
  // not take the place of a good one.
  std::erase_if(steps, [&](int64_t step) { return step > newest; });
  if (steps.size() <= static_cast<size_t>(keep)) return {};
  steps.resize(steps.size() - static_cast<size_t>(keep));
  for (const int64_t step : steps) {
    SHAKEDOWN_TRY(Remove(directory_fd, CheckpointManifestName(step)));
    // On disk before the file goes: after a power cut in between there is no manifest without file.
    if (::fsync(directory_fd) != 0) return FailErrno("fsync", "the checkpoint directory");
    SHAKEDOWN_TRY(Remove(directory_fd, CheckpointFileName(step)));
  }
  if (::fsync(directory_fd) != 0) return FailErrno("fsync", "the checkpoint directory");
  return {};
}

}  // namespace shakedown
