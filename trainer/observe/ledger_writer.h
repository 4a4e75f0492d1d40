// ledger.bin: what the rank did, step by step (format: harness/wire/ledger.h).
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/wire/ledger.h"

namespace shakedown {

// Thread-safe: the training thread and the checkpoint writer both append.
class LedgerWriter {
 public:
  // Creates the file. An existing one is an Error: it is the evidence of another attempt.
  static Result<std::unique_ptr<LedgerWriter>> Create(const std::filesystem::path& path,
                                                      const LedgerHeader& header);
  // One write(2) for the whole record.
  Status Append(const LedgerRecord& record);

 private:
  LedgerWriter(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  std::mutex mutex_;  // a record that was written in two pieces must not be split by another
  UniqueFd fd_;
  const std::string path_;
};

}  // namespace shakedown
