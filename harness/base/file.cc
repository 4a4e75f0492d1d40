#include "harness/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "harness/base/file_kind.h"

namespace shakedown {
namespace fs = std::filesystem;

Result<std::string> ReadFile(const fs::path& path, int64_t limit_bytes) {
  // O_NONBLOCK so that a FIFO put in the place of a file cannot hang the reader.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return FailErrno("open", path.native());
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return FailErrno("stat", path.native());
  if (S_ISDIR(st.st_mode)) return FailErrno("read", path.native(), EISDIR);
  if (!S_ISREG(st.st_mode)) {
    return Fail("cannot read '" + path.native() + "': " + NotRegular(st.st_mode));
  }
  if (st.st_size > limit_bytes) {
    return Fail("cannot read '" + path.native() + "': " + std::to_string(st.st_size) +
                " bytes, more than the limit of " + std::to_string(limit_bytes));
  }
  std::string out;
  out.reserve(static_cast<size_t>(st.st_size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read", path.native());
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
    if (static_cast<int64_t>(out.size()) > limit_bytes) {
      return Fail("cannot read '" + path.native() + "': it grew over the limit while being read");
    }
  }
}

Status WriteAll(int fd, std::string_view bytes, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("write", what);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status FsyncDirectory(const fs::path& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("open directory", directory.native());
  if (::fsync(fd.get()) != 0) return FailErrno("fsync directory", directory.native());
  return {};
}

Status PublishFile(const fs::path& path, std::string_view bytes, Durability durability) {
  std::string temporary = path.native() + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return FailErrno("create a temporary file for", path.native());
  const auto abandon = [&](tl::unexpected<Error> error) {
    ::unlink(temporary.c_str());
    return error;
  };
  if (Status written = WriteAll(fd.get(), bytes, temporary); !written) {
    return abandon(tl::unexpected<Error>(written.error()));
  }
  if (durability == Durability::kFsync && ::fsync(fd.get()) != 0) {
    return abandon(FailErrno("fsync", temporary));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return abandon(FailErrno("rename a temporary file to", path.native()));
  }
  if (durability == Durability::kFsync)
    return FsyncDirectory(path.parent_path().empty() ? fs::path(".") : path.parent_path());
  return {};
}

Status MakeDirectories(const fs::path& path) {
  if (path.empty()) return {};
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return {};
    return FailErrno("create directory", path.native(), ENOTDIR);
  }
  SHAKEDOWN_TRY(MakeDirectories(path.parent_path()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return FailErrno("create directory", path.native());
  }
  return {};
}

Result<LineWriter> LineWriter::Open(const fs::path& path) {
  LineWriter writer;
  writer.path_ = path.native();
  writer.fd_.Reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!writer.fd_) return FailErrno("open for appending", path.native());
  return writer;
}

Status LineWriter::Append(std::string_view line, Durability durability) {
  std::string record(line);
  record += '\n';
  SHAKEDOWN_TRY(WriteAll(fd_.get(), record, path_));
  if (durability == Durability::kFsync && ::fdatasync(fd_.get()) != 0) {
    return FailErrno("fdatasync", path_);
  }
  return {};
}

Lines SplitLines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      lines.torn = text;
      break;
    }
    lines.complete.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace shakedown
