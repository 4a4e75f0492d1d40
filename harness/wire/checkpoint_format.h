// The checkpoint's files as a reader without torch sees them: the second reader of the evidence,
// and the names that the trainer uses. Format: README.md beside this file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/digest.h"
#include "harness/base/status.h"
#include "harness/wire/json.h"

namespace shakedown {

std::string CheckpointFileName(int64_t step);      // "step-00000030.pt"
std::string CheckpointManifestName(int64_t step);  // "step-00000030.json"
// Step of a manifest's or checkpoint file's name; nullopt for any other name.
std::optional<int64_t> CheckpointStepOf(std::string_view file_name);
inline constexpr char kCheckpointTemporaryPrefix[] = ".tmp-";

struct CheckpointTensor {
  std::string name;
  std::string dtype;  // "float32", "int64", "uint8"
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  Digest128 digest;
};

struct CheckpointManifest {
  int64_t step = 0;
  std::string file;
  int64_t bytes = 0;
  Digest128 digest;  // of the file
  int world_size = 0;
  int64_t epoch = 0;
  int64_t position = 0;
  Digest128 weights;
  Digest128 optimizer;
  std::vector<Digest128> rng;  // by rank
  std::vector<CheckpointTensor> tensors;
};

Json ToJson(const CheckpointManifest& manifest);
Result<CheckpointManifest> CheckpointManifestFromJson(const Json& json);

// What the second reader found. It reads the archive itself and computes each digest anew from the
// tensors' bytes; nothing is taken from the manifest but what is compared.
struct CheckpointInspection {
  int64_t step = 0;
  std::string manifest_name;
  bool complete = false;  // a manifest and a file of the size that it states
  bool verified = false;  // and all digests agree
  std::string why;        // when not: the first thing that is wrong
  Digest128 file;
  Digest128 weights;
  Digest128 optimizer;
  std::vector<Digest128> rng;
};

struct CheckpointListing {
  struct File {
    std::string name;
    int64_t bytes = 0;
    uint64_t inode = 0;
    int64_t mtime_ns = 0;
  };
  std::vector<File> files;  // sorted by name
};

// `directory_fd` is not consumed. Never follows links.
Result<CheckpointListing> ListCheckpoints(int directory_fd);
CheckpointInspection InspectCheckpoint(int directory_fd, int64_t step);

}  // namespace shakedown
