#include "injectors/primitives/ballast.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "harness/base/unique_fd.h"

namespace shakedown {
namespace {

// As much as one call gives; 0 when there is no room for `bytes`. errno otherwise, in `error`.
int64_t Grow(int file, int64_t size, int64_t bytes, int* error) {
  *error = 0;
  int result = 0;
  do {
    result = ::fallocate(file, 0, size, bytes);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return bytes;
  if (errno != ENOSPC) *error = errno;
  return 0;
}

}  // namespace

Result<std::string> NewBallastName(int injection) {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return FailErrno("draw a random name for", "the ballast file");
  }
  char name[64];
  std::snprintf(name, sizeof name, ".shakedown-ballast-%d-%016llx", injection,
                static_cast<unsigned long long>(number));
  return std::string(name);
}

Result<FilesystemSpace> SpaceOf(int directory) {
  struct statfs fs {};
  int result = 0;
  do {
    result = ::fstatfs(directory, &fs);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return FailErrno("measure the filesystem of", "the directory");
  return FilesystemSpace{.total_bytes = static_cast<int64_t>(fs.f_blocks) * fs.f_bsize,
                         .available_bytes = static_cast<int64_t>(fs.f_bavail) * fs.f_bsize,
                         .tmpfs = fs.f_type == TMPFS_MAGIC};
}

Result<int64_t> FillFilesystem(int directory, const std::string& name) {
  const Result<FilesystemSpace> space = SpaceOf(directory);
  if (!space) return tl::unexpected(space.error());
  UniqueFd file(::openat(directory, name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return FailErrno("create the ballast", name);
  // Others may take or free space meanwhile, so what was measured is where the search begins and
  // not where it ends: halve while there is no room, and stop when there is none for one byte.
  int64_t size = 0;
  int64_t piece = std::max<int64_t>(space->available_bytes, 4096);
  while (piece > 0) {
    int error = 0;
    const int64_t grown = Grow(file.get(), size, piece, &error);
    if (error != 0) return FailErrno("fill the filesystem with", name, error);
    size += grown;
    if (grown == 0) piece /= 2;
  }
  return size;
}

int TryToWrite(int directory) {
  UniqueFd file(::openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) return errno;
  const char byte = 'x';
  ssize_t written = 0;
  do {
    written = ::write(file.get(), &byte, 1);
  } while (written < 0 && errno == EINTR);
  return written == 1 ? 0 : errno;
}

}  // namespace shakedown
