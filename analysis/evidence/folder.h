// A run directory, opened once and read from within: no path leads out of it, since no symbolic
// link is followed and every name is taken apart.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"

namespace shakedown {

class EvidenceFolder {
 public:
  static Result<EvidenceFolder> Open(const std::filesystem::path& root);

  // `path` begins as the root was given (RunDir's functions give such paths). Absent: the Error's
  // code is ENOENT. A link, a directory, a FIFO, a path with "..", a file over the limit: other
  // Errors.
  Result<std::string> Read(const std::filesystem::path& path, int64_t limit_bytes) const;

  // "attempt-0/rank-1/log.jsonl" of a path that begins as the root was given.
  std::string Relative(const std::filesystem::path& path) const;

  struct Entry {
    std::string name;
    bool directory = false;
  };
  // Sorted by name; at most 10,000. Empty when the folder is absent or no folder.
  std::vector<Entry> List(const std::filesystem::path& path) const;

  // Regular files below `path`, relative to the root; at most 10,000, at most 8 folders deep.
  std::vector<std::string> FilesBelow(const std::filesystem::path& path) const;

 private:
  Result<UniqueFd> OpenBelow(const std::filesystem::path& path, int flags) const;

  std::filesystem::path root_;
  UniqueFd fd_;
};

}  // namespace shakedown
