#include "harness/wire/zip_archive.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace shakedown {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kEnd64LocatorSignature = 0x07064b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kEnd64LocatorBytes = 20;
constexpr size_t kCentralBytes = 46;
constexpr size_t kLocalBytes = 30;
constexpr size_t kLongestComment = 0xFFFF;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the real value stands in the zip64 record
constexpr uint16_t kEncrypted = 1;

template <typename T>
T Get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool Fits(std::string_view bytes, uint64_t at, uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

struct Directory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
};

// The end record is found from the back, since a comment of any length may follow it.
std::optional<size_t> FindEnd(std::string_view archive) {
  if (archive.size() < kEndBytes) return std::nullopt;
  const size_t last = archive.size() - kEndBytes;
  const size_t first = last - std::min(last, kLongestComment);
  for (size_t at = last + 1; at-- > first;) {
    if (Get<uint32_t>(archive, at) == kEndSignature) return at;
  }
  return std::nullopt;
}

Result<Directory> FindDirectory(std::string_view archive) {
  const std::optional<size_t> end = FindEnd(archive);
  if (!end)
    return Fail("not a zip archive: no end record in " + std::to_string(archive.size()) + " bytes");
  Directory directory{Get<uint32_t>(archive, *end + 16), Get<uint32_t>(archive, *end + 12),
                      Get<uint16_t>(archive, *end + 10)};
  if (*end >= kEnd64LocatorBytes &&
      Get<uint32_t>(archive, *end - kEnd64LocatorBytes) == kEnd64LocatorSignature) {
    const auto at = Get<uint64_t>(archive, *end - kEnd64LocatorBytes + 8);
    if (!Fits(archive, at, kEnd64Bytes) || Get<uint32_t>(archive, at) != kEnd64Signature) {
      return Fail("zip archive: the zip64 end record is not where its locator says");
    }
    directory = {Get<uint64_t>(archive, at + 48), Get<uint64_t>(archive, at + 40),
                 Get<uint64_t>(archive, at + 32)};
  }
  if (!Fits(archive, directory.offset, directory.bytes)) {
    return Fail("zip archive: the central directory lies outside the file");
  }
  return directory;
}

struct Entry {
  std::string name;
  uint64_t size = 0;
  uint64_t compressed = 0;
  uint64_t local_header = 0;
};

// Values that do not fit 32 bits, in this order and only those (APPNOTE 4.5.3).
bool ReadZip64(std::string_view extra, Entry* entry) {
  while (extra.size() >= 4) {
    const auto id = Get<uint16_t>(extra, 0);
    const auto size = Get<uint16_t>(extra, 2);
    if (!Fits(extra, 4, size)) return false;
    std::string_view field = extra.substr(4, size);
    extra.remove_prefix(size_t{4} + size);
    if (id != 1) continue;
    for (uint64_t* value : {&entry->size, &entry->compressed, &entry->local_header}) {
      if (*value != kIn64) continue;
      if (field.size() < 8) return false;
      *value = Get<uint64_t>(field, 0);
      field.remove_prefix(8);
    }
    return true;
  }
  return true;
}

// Reads the entry at the head of `directory` and removes it.
Result<Entry> TakeEntry(std::string_view* directory) {
  if (directory->size() < kCentralBytes || Get<uint32_t>(*directory, 0) != kCentralSignature) {
    return Fail("zip archive: the central directory ends early or holds something else");
  }
  const auto flags = Get<uint16_t>(*directory, 8);
  const auto method = Get<uint16_t>(*directory, 10);
  const auto name_bytes = Get<uint16_t>(*directory, 28);
  const auto extra_bytes = Get<uint16_t>(*directory, 30);
  const auto comment_bytes = Get<uint16_t>(*directory, 32);
  const size_t all = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
  if (directory->size() < all) return Fail("zip archive: the central directory ends early");
  Entry entry{std::string(directory->substr(kCentralBytes, name_bytes)),
              Get<uint32_t>(*directory, 24), Get<uint32_t>(*directory, 20),
              Get<uint32_t>(*directory, 42)};
  const std::string_view extra = directory->substr(kCentralBytes + name_bytes, extra_bytes);
  directory->remove_prefix(all);
  if (!ReadZip64(extra, &entry)) {
    return Fail("zip archive: damaged zip64 sizes of entry '" + entry.name + "'");
  }
  if (flags & kEncrypted) return Fail("zip archive: entry '" + entry.name + "' is encrypted");
  if (method != 0 || entry.size != entry.compressed) {
    return Fail("zip archive: entry '" + entry.name + "' is compressed, not stored");
  }
  return entry;
}

// The sizes of the local header are not used: writers that stream leave them empty.
Result<std::string_view> BytesOf(const Entry& entry, std::string_view archive) {
  if (!Fits(archive, entry.local_header, kLocalBytes) ||
      Get<uint32_t>(archive, entry.local_header) != kLocalSignature) {
    return Fail("zip archive: no local header of entry '" + entry.name + "'");
  }
  const uint64_t data = entry.local_header + kLocalBytes +
                        Get<uint16_t>(archive, entry.local_header + 26) +
                        Get<uint16_t>(archive, entry.local_header + 28);
  if (!Fits(archive, data, entry.size)) {
    return Fail("zip archive: entry '" + entry.name + "' reaches beyond the end of the file");
  }
  return archive.substr(data, entry.size);
}

}  // namespace

Result<std::map<std::string, std::string_view>> ReadZipArchive(std::string_view archive) {
  const Result<Directory> found = FindDirectory(archive);
  if (!found) return tl::unexpected<Error>(found.error());
  std::string_view directory = archive.substr(found->offset, found->bytes);
  std::map<std::string, std::string_view> entries;
  for (uint64_t i = 0; i < found->entries; ++i) {
    const Result<Entry> entry = TakeEntry(&directory);
    if (!entry) return tl::unexpected<Error>(entry.error());
    const Result<std::string_view> bytes = BytesOf(*entry, archive);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    if (!entries.emplace(entry->name, *bytes).second) {
      return Fail("zip archive: two entries are called '" + entry->name + "'");
    }
  }
  return entries;
}

}  // namespace shakedown
