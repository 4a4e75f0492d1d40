// Files: read whole, append lines, publish atomically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"

namespace shakedown {

// Reads a regular file of at most `limit_bytes`. A directory, a FIFO or a device is refused without
// blocking.
Result<std::string> ReadFile(const std::filesystem::path& path,
                             int64_t limit_bytes = int64_t{1} << 30);

// Writes all of `bytes` to fd; retries on EINTR and on short writes.
Status WriteAll(int fd, std::string_view bytes, std::string_view what);

Status FsyncDirectory(const std::filesystem::path& directory);

enum class Durability { kBuffered, kFsync };

// Writes to a fresh temporary name beside `path` and renames: a reader sees the old file or the new
// one, never a part. With kFsync the file and its directory are on disk when it returns.
Status PublishFile(const std::filesystem::path& path, std::string_view bytes,
                   Durability durability = Durability::kFsync);

// Creates `path` and its parents (0700 for what is new).
Status MakeDirectories(const std::filesystem::path& path);

// An append-only file of lines with one writer. Each line is one write(2), so that a killed writer
// leaves at most one torn line, the last.
class LineWriter {
 public:
  LineWriter() = default;
  static Result<LineWriter> Open(const std::filesystem::path& path);
  // `line` has no newline. With kFsync the line is on disk when it returns.
  Status Append(std::string_view line, Durability durability = Durability::kBuffered);
  bool open() const { return fd_.valid(); }

 private:
  UniqueFd fd_;
  std::string path_;
};

// Complete lines of `text` without their newlines; a last line without a newline is in `torn`.
struct Lines {
  std::vector<std::string_view> complete;
  std::string_view torn;
};
Lines SplitLines(std::string_view text);

}  // namespace shakedown
