#include "trainer/data/idx.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "harness/base/file.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

// Magic numbers: two zero bytes, the element type (8: unsigned byte), the number of dimensions.
constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;
constexpr std::string_view kImagesSuffix = "images-idx3-ubyte";
constexpr std::string_view kLabelsSuffix = "labels-idx1-ubyte";
// Sample ids are 32 bits wide, in batches and in the ledger.
constexpr int64_t kMaxElements = int64_t{1} << 31;

std::string Hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08" PRIX32, value);
  return text;
}

tl::unexpected<Error> Damaged(const fs::path& path, size_t offset, const std::string& what) {
  return Fail("cannot use IDX file '" + path.native() + "': at byte " + std::to_string(offset) +
              ": " + what);
}

// A file with its header checked against its size: what follows the header is exactly the data.
struct IdxFile {
  std::vector<int64_t> sizes;
  std::string bytes;
  size_t header_bytes = 0;

  std::span<const uint8_t> data() const {
    return {reinterpret_cast<const uint8_t*>(bytes.data()) + header_bytes,
            bytes.size() - header_bytes};
  }
};

uint32_t BigEndian(std::string_view bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  return value;
}

Result<IdxFile> ReadIdxFile(const fs::path& path, uint32_t magic) {
  Result<std::string> bytes = ReadFile(path, int64_t{4} << 30);
  if (!bytes) return tl::unexpected(bytes.error());
  IdxFile file{{}, *std::move(bytes), 0};
  const size_t size = file.bytes.size();
  const size_t dimensions = magic & 0xFF;
  file.header_bytes = 4 + 4 * dimensions;
  if (size < 4) return Damaged(path, size, "the file ends within the magic number");
  if (BigEndian(file.bytes, 0) != magic) {
    return Damaged(path, 0,
                   "magic number " + Hex(BigEndian(file.bytes, 0)) + ", expected " + Hex(magic) +
                       (file.bytes.starts_with("\x1F\x8B") ? "; it is compressed: gunzip it" : ""));
  }
  if (size < file.header_bytes) return Damaged(path, size, "the file ends within the sizes");
  int64_t elements = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const int64_t count = BigEndian(file.bytes, 4 + 4 * i);
    if (count == 0 || count > kMaxElements / elements) {
      return Damaged(path, 4 + 4 * i,
                     "size " + std::to_string(count) + " of dimension " + std::to_string(i + 1) +
                         " is zero or too large");
    }
    elements *= count;
    file.sizes.push_back(count);
  }
  const size_t expected = file.header_bytes + static_cast<size_t>(elements);
  if (size < expected) {
    return Damaged(
        path, size,
        "the file ends, its sizes ask for " + std::to_string(expected) + " bytes; fetch it again");
  }
  if (size > expected) {
    return Damaged(path, expected,
                   std::to_string(size - expected) + " bytes follow after the last element");
  }
  return file;
}

Result<fs::path> FindOne(const fs::path& directory, std::string_view suffix) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().native();
    if (name.ends_with(suffix)) found.push_back(name);
  }
  if (error) return FailErrno("list the data directory", directory.native(), error.value());
  if (found.size() > 1) {
    std::erase_if(found, [](const std::string& name) { return !name.starts_with("train-"); });
  }
  if (found.size() == 1) return directory / found[0];
  return Fail("cannot find the data in '" + directory.native() + "': it needs exactly one file " +
              "that ends in '" + std::string(suffix) + "', or one of several that begins with " +
              "'train-'");
}

}  // namespace

uint8_t DataSet::largest_pixel() const { return *std::max_element(pixels.begin(), pixels.end()); }
uint8_t DataSet::largest_label() const { return *std::max_element(labels.begin(), labels.end()); }

Result<IdxPair> FindIdxPair(const fs::path& directory) {
  Result<fs::path> images = FindOne(directory, kImagesSuffix);
  if (!images) return tl::unexpected(images.error());
  Result<fs::path> labels = FindOne(directory, kLabelsSuffix);
  if (!labels) return tl::unexpected(labels.error());
  return IdxPair{*std::move(images), *std::move(labels)};
}

Result<DataSet> LoadDataSet(const fs::path& directory) {
  const Result<IdxPair> pair = FindIdxPair(directory);
  if (!pair) return tl::unexpected(pair.error());
  const Result<IdxFile> images = ReadIdxFile(pair->images, kImagesMagic);
  if (!images) return tl::unexpected(images.error());
  const Result<IdxFile> labels = ReadIdxFile(pair->labels, kLabelsMagic);
  if (!labels) return tl::unexpected(labels.error());
  if (labels->sizes[0] != images->sizes[0]) {
    return Damaged(pair->labels, 4,
                   std::to_string(labels->sizes[0]) + " labels for the " +
                       std::to_string(images->sizes[0]) + " images of '" + pair->images.native() +
                       "'; the two do not belong together");
  }
  DataSet set;
  set.samples = images->sizes[0];
  set.features = images->sizes[1] * images->sizes[2];
  set.pixels.assign(images->data().begin(), images->data().end());
  set.labels.assign(labels->data().begin(), labels->data().end());
  return set;
}

}  // namespace shakedown
