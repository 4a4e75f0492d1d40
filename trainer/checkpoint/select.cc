#include "trainer/checkpoint/select.h"

#include <algorithm>
#include <vector>

#include "harness/base/file.h"
#include "trainer/defects/defect.h"

namespace shakedown {
namespace {

// The directory is held by descriptor and may be replaced by name; /proc leads to the held one.
std::filesystem::path PathAt(int directory_fd, const std::string& name) {
  return "/proc/self/fd/" + std::to_string(directory_fd) + "/" + name;
}

}  // namespace

Result<LoadedCheckpoint> ReadCheckpoint(int directory_fd, int64_t step) {
  const std::string name = CheckpointManifestName(step);
  const Result<std::string> text = ReadFile(PathAt(directory_fd, name), 16 << 20);
  if (!text) return tl::unexpected<Error>(text.error());
  const Result<Json> json = ParseJson(*text);
  if (!json) return Wrap("manifest '" + name + "'", json.error());
  Result<CheckpointManifest> manifest = CheckpointManifestFromJson(*json);
  if (!manifest) return Wrap("manifest '" + name + "'", manifest.error());
  if (manifest->step != step || manifest->file != CheckpointFileName(step)) {
    return Fail("manifest '" + name + "' is that of another checkpoint, '" + manifest->file + "'");
  }
  Result<std::string> bytes = ReadFile(PathAt(directory_fd, manifest->file));
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  if (Planted(Defect::kTrustsManifest))
    return LoadedCheckpoint{*std::move(manifest), *std::move(bytes)};
  if (static_cast<int64_t>(bytes->size()) != manifest->bytes) {
    return Fail("'" + manifest->file + "' has " + std::to_string(bytes->size()) +
                " bytes, its manifest says " + std::to_string(manifest->bytes));
  }
  if (bytes->empty() || Xxh3Of(*bytes) != manifest->digest) {
    return Fail("'" + manifest->file + "' does not have the digest that its manifest says");
  }
  return LoadedCheckpoint{std::move(*manifest), std::move(*bytes)};
}

Result<std::optional<CheckpointManifest>> SelectCheckpoint(int directory_fd,
                                                           const CheckpointRefused& refused) {
  const Result<CheckpointListing> listing = ListCheckpoints(directory_fd);
  if (!listing) return tl::unexpected<Error>(listing.error());
  std::vector<int64_t> steps;
  for (const auto& file : listing->files) {
    const auto step = CheckpointStepOf(file.name);
    if (step && file.name == CheckpointManifestName(*step)) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  std::string first_reason;
  for (const int64_t step : steps) {
    Result<LoadedCheckpoint> checkpoint = ReadCheckpoint(directory_fd, step);
    if (checkpoint) return std::move(checkpoint->manifest);
    refused(step, CheckpointFileName(step), checkpoint.error().message);
    if (first_reason.empty()) first_reason = checkpoint.error().message;
  }
  if (steps.empty()) return std::nullopt;
  return Fail("none of the " + std::to_string(steps.size()) +
              " checkpoints can be used (the newest: " + first_reason +
              "); restore one, or empty the directory to begin again from step 0");
}

}  // namespace shakedown
