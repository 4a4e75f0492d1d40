#include "harness/wire/checkpoint_format.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>

#include "harness/base/unique_fd.h"
#include "harness/wire/run_dir.h"
#include "harness/wire/zip_archive.h"

namespace shakedown {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr size_t kDigits = 8;
constexpr int64_t kLongestManifest = 16 << 20;
constexpr int64_t kLargestFile = int64_t{1} << 32;

std::string Name(int64_t step, std::string_view suffix) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%08lld", static_cast<long long>(step));
  return std::string(kPrefix) + digits + std::string(suffix);
}

std::optional<int64_t> BytesOfElement(std::string_view dtype) {
  if (dtype == "float32") return 4;
  if (dtype == "int64") return 8;
  if (dtype == "uint8") return 1;
  return std::nullopt;
}

// Fields of one JSON object, all of them required; the first that is missing or wrong is kept.
struct Fields {
  const Json& object;
  std::string wrong;

  void Complain(std::string_view key) {
    if (wrong.empty()) wrong = "field '" + std::string(key) + "' is missing or has another type";
  }
  int64_t Count(std::string_view key) {
    const auto value = IntField(object, key);
    if (!value || *value < 0) Complain(key);
    return value.value_or(0);
  }
  std::string Text(std::string_view key) {
    const auto value = StringField(object, key);
    if (!value || value->empty()) Complain(key);
    return value.value_or("");
  }
  Digest128 Digest(std::string_view key) { return ToDigest(Field(object, key), key); }
  Digest128 ToDigest(const Json& value, std::string_view key) {
    if (value.is_string()) {
      if (auto digest = ParseDigest128(value.get_ref<const std::string&>())) return *digest;
    }
    Complain(key);
    return {};
  }
  const Json& Array(std::string_view key) {
    static const Json empty = Json::array();
    const Json& value = Field(object, key);
    if (value.is_array()) return value;
    Complain(key);
    return empty;
  }
};

// True when dtype and shape give just so many bytes; shapes are untrusted, so the product is
// guarded.
bool SizeAgrees(const CheckpointTensor& tensor) {
  const std::optional<int64_t> element = BytesOfElement(tensor.dtype);
  if (!element) return false;
  int64_t bytes = *element;
  for (const int64_t extent : tensor.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return bytes == tensor.bytes;
}

Result<CheckpointTensor> TensorFromJson(const Json& json) {
  Fields fields{json, {}};
  CheckpointTensor tensor{
      fields.Text("name"), fields.Text("dtype"), {}, fields.Count("bytes"), fields.Digest("xxh3")};
  for (const Json& extent : fields.Array("shape")) {
    if (!extent.is_number_integer()) {
      fields.Complain("shape");
      break;
    }
    tensor.shape.push_back(extent.get<int64_t>());
  }
  if (!fields.wrong.empty()) return Fail(fields.wrong);
  if (!SizeAgrees(tensor)) {
    return Fail("tensor '" + tensor.name + "': dtype and shape do not give " +
                std::to_string(tensor.bytes) + " bytes");
  }
  return tensor;
}

// A regular file in the directory, never through a link; O_NONBLOCK so that a FIFO put in its place
// cannot hang the reader.
Result<std::string> ReadAt(int directory_fd, const std::string& name, int64_t limit) {
  UniqueFd fd(::openat(directory_fd, name.c_str(),
                       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return FailErrno("open", name);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return FailErrno("stat", name);
  if (!S_ISREG(st.st_mode)) return Fail("cannot read '" + name + "': not a regular file");
  if (st.st_size > limit) {
    return Fail("cannot read '" + name + "': " + std::to_string(st.st_size) +
                " bytes, more than the limit of " + std::to_string(limit));
  }
  std::string bytes(static_cast<size_t>(st.st_size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read", name);
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

// The archive's record `data/<i>`, whatever folder it is in.
std::optional<std::string_view> Record(const std::map<std::string, std::string_view>& entries,
                                       size_t i) {
  const std::string path = "data/" + std::to_string(i);
  for (const auto& [name, bytes] : entries) {
    if (name == path || name.ends_with("/" + path)) return bytes;
  }
  return std::nullopt;
}

std::optional<size_t> RankOf(std::string_view name) {
  if (!name.starts_with("rng.") || name.size() > 10) return std::nullopt;
  size_t rank = 0;
  for (const char c : name.substr(4)) {
    if (c < '0' || c > '9') return std::nullopt;
    rank = rank * 10 + static_cast<size_t>(c - '0');
  }
  return rank;
}

// Digests everything in the archive into `found`; returns what is wrong with it, or "".
std::string Verify(const CheckpointManifest& manifest, std::string_view file,
                   CheckpointInspection* found) {
  found->file = Xxh3Of(file);
  if (found->file != manifest.digest) return "the digest of the file is not the manifest's";
  const auto entries = ReadZipArchive(file);
  if (!entries) return entries.error().message;
  Xxh3 weights;
  Xxh3 optimizer;
  std::map<size_t, Digest128> rng;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const CheckpointTensor& tensor = manifest.tensors[i];
    const std::optional<std::string_view> bytes = Record(*entries, i);
    if (!bytes) return "the archive has no record data/" + std::to_string(i);
    if (static_cast<int64_t>(bytes->size()) != tensor.bytes) {
      return "tensor '" + tensor.name + "' has " + std::to_string(bytes->size()) +
             " bytes in the file and " + std::to_string(tensor.bytes) + " in the manifest";
    }
    if (Xxh3Of(*bytes) != tensor.digest) {
      return "the digest of tensor '" + tensor.name + "' is not the manifest's";
    }
    if (tensor.name.starts_with("model.")) weights.Update(*bytes);
    if (tensor.name.starts_with("optim.")) optimizer.Update(*bytes);
    if (const auto rank = RankOf(tensor.name)) rng[*rank] = tensor.digest;
  }
  const auto all_weights = weights.Finish();
  const auto all_optimizer = optimizer.Finish();
  if (!all_weights || !all_optimizer) return "it holds no model or no optimizer state";
  found->weights = *all_weights;
  found->optimizer = *all_optimizer;
  for (const auto& [rank, digest] : rng) {
    if (rank != found->rng.size()) break;
    found->rng.push_back(digest);
  }
  if (found->weights != manifest.weights) return "the digest of all weights is not the manifest's";
  if (found->optimizer != manifest.optimizer) {
    return "the digest of the optimizer's state is not the manifest's";
  }
  if (found->rng != manifest.rng || rng.size() != manifest.rng.size() ||
      static_cast<int>(rng.size()) != manifest.world_size) {
    return "the generators' states are not those of the manifest, one for each rank";
  }
  return "";
}

}  // namespace

std::string CheckpointFileName(int64_t step) { return Name(step, ".pt"); }
std::string CheckpointManifestName(int64_t step) { return Name(step, ".json"); }

std::optional<int64_t> CheckpointStepOf(std::string_view file_name) {
  const std::string whole(file_name);
  if (!file_name.starts_with(kPrefix)) return std::nullopt;
  file_name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  size_t digits = 0;
  while (digits < file_name.size() && digits < 18 && file_name[digits] >= '0' &&
         file_name[digits] <= '9') {
    step = step * 10 + (file_name[digits++] - '0');
  }
  // The spelling is exact: "step-30.pt" and "step-000000030.pt" are somebody else's files.
  if (digits < kDigits) return std::nullopt;
  if (whole != CheckpointFileName(step) && whole != CheckpointManifestName(step)) {
    return std::nullopt;
  }
  return step;
}

Json ToJson(const CheckpointManifest& manifest) {
  Json out = Json::object();
  out["schema_version"] = kSchemaVersion;
  out["step"] = manifest.step;
  out["file"] = manifest.file;
  out["bytes"] = manifest.bytes;
  out["xxh3"] = ToHex(manifest.digest);
  out["world_size"] = manifest.world_size;
  out["epoch"] = manifest.epoch;
  out["position"] = manifest.position;
  out["weights"] = ToHex(manifest.weights);
  out["optimizer"] = ToHex(manifest.optimizer);
  out["rng"] = Json::array();
  for (const Digest128& digest : manifest.rng) out["rng"].push_back(ToHex(digest));
  out["tensors"] = Json::array();
  for (const CheckpointTensor& tensor : manifest.tensors) {
    out["tensors"].push_back({{"name", tensor.name},
                              {"dtype", tensor.dtype},
                              {"shape", tensor.shape},
                              {"bytes", tensor.bytes},
                              {"xxh3", ToHex(tensor.digest)}});
  }
  return out;
}

Result<CheckpointManifest> CheckpointManifestFromJson(const Json& json) {
  if (!json.is_object()) return Fail("checkpoint manifest: not an object");
  Fields fields{json, {}};
  CheckpointManifest manifest;
  if (fields.Count("schema_version") != kSchemaVersion) fields.Complain("schema_version");
  manifest.step = fields.Count("step");
  manifest.file = fields.Text("file");
  manifest.bytes = fields.Count("bytes");
  manifest.digest = fields.Digest("xxh3");
  manifest.world_size = static_cast<int>(std::min<int64_t>(fields.Count("world_size"), 1 << 24));
  manifest.epoch = fields.Count("epoch");
  manifest.position = fields.Count("position");
  manifest.weights = fields.Digest("weights");
  manifest.optimizer = fields.Digest("optimizer");
  for (const Json& digest : fields.Array("rng")) {
    manifest.rng.push_back(fields.ToDigest(digest, "rng"));
  }
  for (const Json& entry : fields.Array("tensors")) {
    Result<CheckpointTensor> tensor = TensorFromJson(entry);
    if (!tensor) return Wrap("checkpoint manifest", tensor.error());
    manifest.tensors.push_back(std::move(*tensor));
  }
  if (!fields.wrong.empty()) return Fail("checkpoint manifest: " + fields.wrong);
  return manifest;
}

Result<CheckpointListing> ListCheckpoints(int directory_fd) {
  // Opened anew, since a duplicate would share its position with the caller's.
  const int fd = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FailErrno("open", "the checkpoint directory");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd), ::closedir);
  if (!directory) {
    ::close(fd);
    return FailErrno("list", "the checkpoint directory");
  }
  CheckpointListing listing;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    struct stat st {};
    if (::fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
      listing.files.push_back({entry->d_name, st.st_size, st.st_ino,
                               st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec});
    }
    errno = 0;  // a file that has gone meanwhile is no error of the listing
  }
  if (errno != 0) return FailErrno("list", "the checkpoint directory");
  std::sort(listing.files.begin(), listing.files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return listing;
}

CheckpointInspection InspectCheckpoint(int directory_fd, int64_t step) {
  CheckpointInspection found;
  found.step = step;
  found.manifest_name = CheckpointManifestName(step);
  const auto text = ReadAt(directory_fd, found.manifest_name, kLongestManifest);
  if (!text) {
    found.why = text.error().message;
    return found;
  }
  const auto json = ParseJson(*text);
  const auto manifest = json ? CheckpointManifestFromJson(*json)
                             : Result<CheckpointManifest>(tl::unexpected<Error>(json.error()));
  if (!manifest) {
    found.why = manifest.error().message;
    return found;
  }
  if (manifest->step != step || manifest->file != CheckpointFileName(step)) {
    found.why = "the manifest is that of step " + std::to_string(manifest->step) + " in '" +
                manifest->file + "'";
    return found;
  }
  const auto file = ReadAt(directory_fd, manifest->file, kLargestFile);
  if (!file) {
    found.why = file.error().message;
    return found;
  }
  if (static_cast<int64_t>(file->size()) != manifest->bytes) {
    found.why = "'" + manifest->file + "' has " + std::to_string(file->size()) + " bytes, not " +
                std::to_string(manifest->bytes);
    return found;
  }
  found.complete = true;
  found.why = Verify(*manifest, *file, &found);
  found.verified = found.why.empty();
  return found;
}

}  // namespace shakedown
