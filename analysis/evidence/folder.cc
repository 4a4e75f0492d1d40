#include "analysis/evidence/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "harness/base/file_kind.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxEntries = 10'000;
constexpr int kMaxDepth = 8;

Result<std::string> ReadAll(int fd, const std::string& name, int64_t limit_bytes) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return FailErrno("stat", name);
  if (!S_ISREG(st.st_mode))
    return Fail("cannot read '" + name + "': " + NotRegular(st.st_mode), EINVAL);
  if (st.st_size > limit_bytes) {
    return Fail("cannot read '" + name + "': " + std::to_string(st.st_size) +
                    " bytes, more than the limit of " + std::to_string(limit_bytes),
                EFBIG);
  }
  std::string out;
  out.reserve(static_cast<size_t>(st.st_size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read", name);
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
    if (static_cast<int64_t>(out.size()) > limit_bytes) {
      return Fail("cannot read '" + name + "': it grew over the limit while being read", EFBIG);
    }
  }
}

// The kernel's word for a link or a socket in the place of a file (ELOOP, ENXIO) says little; what
// lies there does.
tl::unexpected<Error> WhyNotOpen(int at, const fs::path& name, bool last,
                                 const std::string& relative) {
  const int code = errno;
  struct stat st {};
  if (code == ENOENT || ::fstatat(at, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return FailErrno("open", relative, code);
  }
  if (last && !S_ISREG(st.st_mode)) {
    return Fail("cannot read '" + relative + "': " + NotRegular(st.st_mode), code);
  }
  if (!last && !S_ISDIR(st.st_mode)) {
    return Fail("cannot read '" + relative + "': '" + name.native() +
                    "' is not a directory: " + std::string(DescribeFileKind(st.st_mode)),
                code);
  }
  return FailErrno("open", relative, code);
}

}  // namespace

Result<EvidenceFolder> EvidenceFolder::Open(const fs::path& root) {
  EvidenceFolder folder;
  folder.root_ = root;
  folder.fd_.Reset(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.fd_) return FailErrno("open run directory", root.native());
  return folder;
}

std::string EvidenceFolder::Relative(const fs::path& path) const {
  return path.lexically_relative(root_).generic_string();
}

// Component by component with O_NOFOLLOW, since openat2(RESOLVE_BENEATH) is missing from older
// kernels and from some sandboxes.
Result<UniqueFd> EvidenceFolder::OpenBelow(const fs::path& path, int flags) const {
  const std::string relative = Relative(path);
  if (relative.empty()) return FailErrno("open", path.native(), EINVAL);
  // Opened anew and not duplicated: a duplicate would share the position of a directory listing.
  UniqueFd at(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at) return FailErrno("open", root_.native());
  const fs::path steps(relative);
  for (auto it = steps.begin(); it != steps.end(); ++it) {
    if (*it == "." || it->empty()) continue;
    if (*it == ".." || *it == "/") return FailErrno("open", relative, EXDEV);
    const bool last = std::next(it) == steps.end();
    UniqueFd next(::openat(at.get(), it->c_str(),
                           O_NOFOLLOW | O_CLOEXEC | (last ? flags : O_RDONLY | O_DIRECTORY)));
    if (!next) return WhyNotOpen(at.get(), *it, last, relative);
    at = std::move(next);
  }
  return at;
}

Result<std::string> EvidenceFolder::Read(const fs::path& path, int64_t limit_bytes) const {
  // O_NONBLOCK: a FIFO in the place of a file must not hang the reader.
  Result<UniqueFd> fd = OpenBelow(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  return ReadAll(fd->get(), Relative(path), limit_bytes);
}

std::vector<EvidenceFolder::Entry> EvidenceFolder::List(const fs::path& path) const {
  std::vector<Entry> entries;
  Result<UniqueFd> fd = OpenBelow(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return entries;
  const int raw = fd->Release();
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(raw), ::closedir);
  if (!dir) {
    ::close(raw);
    return entries;
  }
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat st {};
    if (::fstatat(::dirfd(dir.get()), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    entries.push_back({name, S_ISDIR(st.st_mode)});
    if (entries.size() >= kMaxEntries) break;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

std::vector<std::string> EvidenceFolder::FilesBelow(const fs::path& path) const {
  std::vector<std::string> files;
  std::vector<std::pair<fs::path, int>> folders = {{path, 0}};
  while (!folders.empty() && files.size() < kMaxEntries) {
    const auto [folder, depth] = folders.back();
    folders.pop_back();
    for (const Entry& entry : List(folder)) {
      if (entry.directory) {
        if (depth < kMaxDepth) folders.emplace_back(folder / entry.name, depth + 1);
      } else {
        files.push_back(Relative(folder / entry.name));
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace shakedown
