// What lies where a file was wanted.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace shakedown {

// "a FIFO", "a symlink", "a directory", ... of st_mode.
constexpr std::string_view DescribeFileKind(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symlink";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return "of an unknown kind";
}

// "not a regular file: a FIFO".
inline std::string NotRegular(mode_t mode) {
  return "not a regular file: " + std::string(DescribeFileKind(mode));
}

}  // namespace shakedown
