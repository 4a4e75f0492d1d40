#include "trainer/observe/ledger_writer.h"

#include <fcntl.h>

#include "harness/base/file.h"

namespace shakedown {

Result<std::unique_ptr<LedgerWriter>> LedgerWriter::Create(const std::filesystem::path& path,
                                                           const LedgerHeader& header) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return FailErrno("create the ledger", path.native());
  SHAKEDOWN_TRY(WriteAll(fd.get(), EncodeLedgerHeader(header), path.native()));
  return std::unique_ptr<LedgerWriter>(new LedgerWriter(std::move(fd), path.native()));
}

Status LedgerWriter::Append(const LedgerRecord& record) {
  const std::string bytes = EncodeLedgerRecord(record);
  const std::lock_guard lock(mutex_);
  return WriteAll(fd_.get(), bytes, path_);
}

}  // namespace shakedown
