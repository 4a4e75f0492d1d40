// Checkpoints as files, made without torch: zip archives of stored entries and their manifests.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/file.h"
#include "harness/wire/checkpoint_format.h"

namespace shakedown::test_support {

// An archive as torch writes it: local headers without sizes, each followed by its data.
class ZipBuilder {
 public:
  struct Options {
    uint16_t flags = 0;
    uint16_t method = 0;
    bool zip64 = false;  // sizes in the zip64 field
  };
  ZipBuilder& Add(const std::string& name, std::string_view data) { return Add(name, data, {}); }
  ZipBuilder& Add(const std::string& name, std::string_view data, const Options& options) {
    const auto offset = static_cast<uint32_t>(bytes_.size());
    Put(&bytes_, uint32_t{0x04034b50}, uint16_t{20}, options.flags, options.method, uint32_t{0},
        uint32_t{0}, uint32_t{0}, uint32_t{0}, static_cast<uint16_t>(name.size()),
        uint16_t{kPadding});
    bytes_ += name + std::string(kPadding, 'Z');
    bytes_ += data;
    const uint32_t size = options.zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(data.size());
    const uint16_t extra = options.zip64 ? 20 : 0;
    Put(&directory_, uint32_t{0x02014b50}, uint16_t{20}, uint16_t{20}, options.flags,
        options.method, uint32_t{0}, uint32_t{0}, size, size, static_cast<uint16_t>(name.size()),
        extra, uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, offset);
    directory_ += name;
    if (options.zip64) {
      Put(&directory_, uint16_t{1}, uint16_t{16}, uint64_t{data.size()}, uint64_t{data.size()});
    }
    ++entries_;
    return *this;
  }
  std::string Build(const std::string& comment = "") const {
    std::string out = bytes_ + directory_;
    Put(&out, uint32_t{0x06054b50}, uint16_t{0}, uint16_t{0}, entries_, entries_,
        static_cast<uint32_t>(directory_.size()), static_cast<uint32_t>(bytes_.size()),
        static_cast<uint16_t>(comment.size()));
    return out + comment;
  }

 private:
  static constexpr uint16_t kPadding = 5;
  template <typename... Values>
  static void Put(std::string* to, const Values&... values) {
    (to->append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  }
  std::string bytes_;
  std::string directory_;
  uint16_t entries_ = 0;
};

// A small, sound checkpoint of two ranks; `fill` makes its content differ from others'.
struct BuiltCheckpoint {
  CheckpointManifest manifest;
  std::string bytes;
};
inline BuiltCheckpoint BuildCheckpoint(int64_t step, char fill = 'a') {
  const std::vector<std::tuple<std::string, std::string, std::vector<int64_t>, std::string>>
      tensors = {
          {"model.w", "float32", {2, 3}, std::string(24, fill)},
          {"optim.w.step", "int64", {}, std::string(8, 's')},
          {"optim.w.exp_avg", "float32", {2, 3}, std::string(24, 'm')},
          {"optim.w.exp_avg_sq", "float32", {2, 3}, std::string(24, 'v')},
          {"rng.0", "uint8", {16}, std::string(16, '0')},
          {"rng.1", "uint8", {16}, std::string(16, '1')},
          {"position", "int64", {4}, std::string(32, 'p')},
      };
  BuiltCheckpoint built;
  CheckpointManifest& manifest = built.manifest;
  manifest.step = step;
  manifest.file = CheckpointFileName(step);
  manifest.world_size = 2;
  ZipBuilder zip;
  zip.Add("archive/data.pkl", "pickle");
  std::string weights;
  std::string optimizer;
  for (const auto& [name, dtype, shape, data] : tensors) {
    zip.Add("archive/data/" + std::to_string(manifest.tensors.size()), data);
    manifest.tensors.push_back(
        {name, dtype, shape, static_cast<int64_t>(data.size()), Xxh3Of(data)});
    if (name.starts_with("model.")) weights += data;
    if (name.starts_with("optim.")) optimizer += data;
    if (name.starts_with("rng.")) manifest.rng.push_back(Xxh3Of(data));
  }
  manifest.weights = Xxh3Of(weights);
  manifest.optimizer = Xxh3Of(optimizer);
  built.bytes = zip.Build();
  manifest.bytes = static_cast<int64_t>(built.bytes.size());
  manifest.digest = Xxh3Of(built.bytes);
  return built;
}

inline void WriteManifest(const std::filesystem::path& directory,
                          const CheckpointManifest& manifest) {
  SHAKEDOWN_ASSERT(PublishFile(directory / CheckpointManifestName(manifest.step),
                               DumpPretty(ToJson(manifest)), Durability::kBuffered)
                       .has_value());
}
inline void WriteCheckpoint(const std::filesystem::path& directory, const BuiltCheckpoint& built) {
  SHAKEDOWN_ASSERT(
      PublishFile(directory / built.manifest.file, built.bytes, Durability::kBuffered).has_value());
  WriteManifest(directory, built.manifest);
}

}  // namespace shakedown::test_support
