#include "analysis/diagnosis/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "harness/base/unique_fd.h"

namespace shakedown::diagnosis {
namespace {

// Rights that Debian 12's headers do not know, with the version that brought them
// (linux/landlock.h of Linux 6.10).
constexpr uint64_t kTruncate = uint64_t{1} << 14;     // version 3
constexpr uint64_t kDeviceIoctl = uint64_t{1} << 15;  // version 5
constexpr uint64_t kRefer = uint64_t{1} << 13;        // version 2
constexpr uint64_t kFirstVersion = (uint64_t{1} << 13) - 1;

uint64_t AllRights(int version) {
  uint64_t rights = kFirstVersion;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kDeviceIoctl;
  return rights;
}

Status Allow(int ruleset, const std::filesystem::path& path, uint64_t rights) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return FailErrno("open", path.native());
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return FailErrno("stat", path.native());
  if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) return {};
  // A right that means nothing for a file is refused.
  if (!S_ISDIR(st.st_mode)) rights &= ~uint64_t{LANDLOCK_ACCESS_FS_READ_DIR};
  if (rights == 0) return {};
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = fd.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    return FailErrno("allow reading of", path.native());
  }
  return {};
}

}  // namespace

int LandlockVersion() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

Status RestrictReading(const ReadableFiles& files) {
  const int version = LandlockVersion();
  if (version == 0) return Fail("the kernel has no Landlock, or it is turned off", ENOSYS);
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = AllRights(version);
  // Only the first field: later ones are of later versions, and absent means not handled.
  UniqueFd ruleset(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
  if (!ruleset) return FailErrno("create", "a Landlock ruleset");
  for (const auto& path : files.read) {
    SHAKEDOWN_TRY(
        Allow(ruleset.get(), path, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR));
  }
  for (const auto& path : files.list) {
    SHAKEDOWN_TRY(Allow(ruleset.get(), path, LANDLOCK_ACCESS_FS_READ_DIR));
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return FailErrno("set", "no_new_privs");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return FailErrno("restrict", "this thread by Landlock");
  }
  return {};
}

}  // namespace shakedown::diagnosis
