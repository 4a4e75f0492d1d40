#include "injectors/undo.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <memory>

#include "harness/base/unique_fd.h"

namespace shakedown {
namespace {

constexpr std::string_view kBallastPrefix = ".shakedown-";
constexpr std::string_view kTreePrefix = "shakedown-";
// Deeper trees are not ours.
constexpr int kMaxDepth = 64;

constexpr struct {
  UndoVerb verb;
  std::string_view name;
} kVerbs[] = {
    {UndoVerb::kRemoveBallast, "remove_ballast"},
    {UndoVerb::kRemoveTree, "remove_tree"},
    {UndoVerb::kEndProcess, "end_process"},
};

// A path split at its last slash, and the directory that holds it, opened without following links.
struct Place {
  UniqueFd directory;
  std::string name;
};

Result<UniqueFd> OpenBeneath(int directory, const std::string& name, uint64_t flags,
                             uint64_t resolve, const std::string& path) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how)));
  if (!fd) return FailErrno("open", path);
  return fd;
}

// The rules that every path has to satisfy before anything is touched.
Status CheckPath(const std::string& path, std::string_view prefix) {
  const auto refuse = [&](const std::string& why) {
    return Fail("refusing to undo at '" + path + "': " + why + "; look at it and remove it by hand",
                EINVAL);
  };
  if (path.empty() || path[0] != '/') return refuse("not an absolute path");
  if (path.find('\0') != std::string::npos) return refuse("it holds a NUL byte");
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part(path.data() + begin, end - begin);
    if (part.empty() || part == "." || part == "..") return refuse("the path is not canonical");
    begin = end + 1;
  }
  if (!path.substr(path.rfind('/') + 1).starts_with(prefix)) {
    return refuse("its name does not begin with '" + std::string(prefix) + "'");
  }
  return {};
}

// nullopt: the directory does not exist, so neither does what was in it.
Result<std::optional<Place>> FindPlace(int root, const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent = path.substr(1, slash == 0 ? 0 : slash - 1);
  Result<UniqueFd> directory =
      OpenBeneath(root, parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY, 0, "/" + parent);
  if (!directory && directory.error().code == ENOENT) return std::optional<Place>();
  if (!directory) return tl::unexpected(directory.error());
  return std::optional(Place{*std::move(directory), path.substr(slash + 1)});
}

bool Exited(int pidfd) {
  pollfd ready{pidfd, POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

// The root directory as `holder` sees it; without a holder, our own. nullopt: the holder is gone.
Result<std::optional<UniqueFd>> OpenRoot(const std::optional<ProcessIdentity>& holder) {
  UniqueFd pidfd;
  std::string path = "/";
  if (holder) {
    Result<UniqueFd> opened = OpenPidfd(*holder);
    if (!opened && opened.error().code == ESRCH) return std::optional<UniqueFd>();
    if (!opened) return tl::unexpected(opened.error());
    pidfd = *std::move(opened);
    path = "/proc/" + std::to_string(holder->pid) + "/root";
  }
  UniqueFd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int code = errno;
  // Asked after the open: had the holder ended before, the path may have led to another process.
  if (holder && Exited(pidfd.get())) return std::optional<UniqueFd>();
  if (!root) return FailErrno("open", path, code);
  return std::optional(std::move(root));
}

// --- kRemoveBallast

Result<int64_t> FreeBytes(int fd, const std::string& path) {
  struct statfs fs {};
  if (::fstatfs(fd, &fs) != 0) return FailErrno("measure the free space at", path);
  return static_cast<int64_t>(fs.f_bfree) * static_cast<int64_t>(fs.f_bsize);
}

// Opens the ballast if it is there and is ours by its kind. Opening comes second: the open of a
// device or a FIFO would already be an act.
Result<std::optional<UniqueFd>> OpenBallast(const Place& place, const std::string& path) {
  struct stat named {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::optional<UniqueFd>();
    return FailErrno("look at", path);
  }
  if (!S_ISREG(named.st_mode) || named.st_nlink != 1) {
    const char* what = S_ISLNK(named.st_mode)   ? "a symbolic link"
                       : S_ISREG(named.st_mode) ? "a file with a second name"
                                                : "not a regular file";
    return Fail("refusing to remove '" + path + "': it is " + what +
                    ", and our ballast never is; look at it and remove it by hand",
                S_ISLNK(named.st_mode) ? ELOOP : EINVAL);
  }
  UniqueFd file(::openat(place.directory.get(), place.name.c_str(),
                         O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::optional<UniqueFd>();
  if (!file) return FailErrno("open", path);
  struct stat opened {};
  if (::fstat(file.get(), &opened) != 0) return FailErrno("look at", path);
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino || opened.st_nlink != 1) {
    return Fail("refusing to remove '" + path + "': it was exchanged while being opened", EAGAIN);
  }
  return std::optional(std::move(file));
}

// Truncates first: that gives the space back even while somebody else has the file open.
Status FreeBallast(UniqueFd file, const Place& place, const std::string& path) {
  struct stat before {};
  if (::fstat(file.get(), &before) != 0) return FailErrno("look at", path);
  const Result<int64_t> free_before = FreeBytes(file.get(), path);
  if (!free_before) return tl::unexpected(free_before.error());
  if (::ftruncate(file.get(), 0) != 0) return FailErrno("truncate", path);
  file.Reset();
  if (::unlinkat(place.directory.get(), place.name.c_str(), 0) != 0 && errno != ENOENT) {
    return FailErrno("unlink", path);
  }
  struct stat left {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &left, AT_SYMLINK_NOFOLLOW) == 0) {
    return Fail("'" + path + "' is there again after it was removed; something writes it anew",
                EEXIST);
  }
  const Result<int64_t> free_after = FreeBytes(place.directory.get(), path);
  if (!free_after) return tl::unexpected(free_after.error());
  // A ballast that was empty already gives nothing back, and the job may be writing meanwhile.
  if (before.st_blocks > 0 && *free_after < *free_before) {
    return Fail("removed '" + path + "' but its space did not come back: " +
                    std::to_string(*free_before) + " bytes free before, " +
                    std::to_string(*free_after) + " after; see who holds it open (lsof +L1)",
                ENOSPC);
  }
  return {};
}

Status RemoveBallast(const UndoStep& step) {
  SHAKEDOWN_TRY(CheckPath(step.path, kBallastPrefix));
  const Result<std::optional<UniqueFd>> root = OpenRoot(step.process);
  if (!root) return tl::unexpected(root.error());
  if (!root->has_value()) return {};
  const Result<std::optional<Place>> place = FindPlace((*root)->get(), step.path);
  if (!place) return tl::unexpected(place.error());
  if (!place->has_value()) return {};
  Result<std::optional<UniqueFd>> file = OpenBallast(**place, step.path);
  if (!file) return tl::unexpected(file.error());
  if (!file->has_value()) return {};
  return FreeBallast(std::move(**file), **place, step.path);
}

// --- kRemoveTree

class TreeRemover {
 public:
  TreeRemover(std::string path, MonoTime deadline) : path_(std::move(path)), deadline_(deadline) {}

  // Removes `name` in `directory`, whatever it is. What is gone already is no error.
  Status Remove(int directory, const std::string& name, const std::string& path, int depth) {
    if (MonoNow() > deadline_) {
      return Fail("cannot remove all of '" + path_ + "' in time: '" + path +
                      "' and perhaps more is left; remove it by hand",
                  ETIMEDOUT);
    }
    struct stat st {};
    if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return {};
      return FailErrno("look at", path);
    }
    if (!S_ISDIR(st.st_mode)) return Unlink(directory, name, path, 0);
    if (depth >= kMaxDepth) {
      return Fail("refusing to remove '" + path + "': nested too deep to be ours", ELOOP);
    }
    while (true) {
      SHAKEDOWN_TRY(Empty(directory, name, path, depth));
      Status removed = Unlink(directory, name, path, AT_REMOVEDIR);
      // Somebody may still be writing into it; the deadline ends this.
      if (removed || removed.error().code != ENOTEMPTY) return removed;
      if (MonoNow() > deadline_) return removed;
    }
  }

 private:
  struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };

  static Status Unlink(int directory, const std::string& name, const std::string& path, int flags) {
    if (::unlinkat(directory, name.c_str(), flags) == 0 || errno == ENOENT) return {};
    return FailErrno("remove", path);
  }

  Status Empty(int directory, const std::string& name, const std::string& path, int depth) {
    // RESOLVE_NO_XDEV also refuses a bind mount, which the device number would not show.
    Result<UniqueFd> opened =
        OpenBeneath(directory, name, O_RDONLY | O_DIRECTORY, RESOLVE_NO_XDEV, path);
    if (!opened && opened.error().code == ENOENT) return {};
    if (!opened && opened.error().code == EXDEV) {
      return Fail("refusing to remove '" + path +
                      "': something is mounted there; unmount it and remove it by hand",
                  EXDEV);
    }
    if (!opened) return tl::unexpected(opened.error());
    const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(opened->get()));
    if (!stream) return FailErrno("read directory", path);
    (void)opened->Release();  // the stream's now
    // Names first: what a directory gives while it is being changed is not defined.
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream.get())) {
      const std::string_view child = entry->d_name;
      if (child != "." && child != "..") names.emplace_back(child);
    }
    for (const std::string& child : names) {
      SHAKEDOWN_TRY(Remove(::dirfd(stream.get()), child, path + "/" + child, depth + 1));
    }
    return {};
  }

  std::string path_;
  MonoTime deadline_;
};

Status RemoveTree(const UndoStep& step) {
  SHAKEDOWN_TRY(CheckPath(step.path, kTreePrefix));
  const Result<std::optional<UniqueFd>> root = OpenRoot(std::nullopt);
  if (!root) return tl::unexpected(root.error());
  const Result<std::optional<Place>> place = FindPlace((*root)->get(), step.path);
  if (!place) return tl::unexpected(place.error());
  if (!place->has_value()) return {};
  const int directory = (*place)->directory.get();
  const std::string& name = (*place)->name;
  struct stat st {};
  if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
    return Fail("refusing to remove '" + step.path +
                    "': it is not a directory; look at it and remove it by hand",
                ENOTDIR);
  }
  SHAKEDOWN_TRY(
      TreeRemover(step.path, MonoNow() + step.deadline).Remove(directory, name, step.path, 0));
  if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    return Fail("'" + step.path + "' is there again after it was removed", EEXIST);
  }
  return {};
}

// --- kEndProcess

Status EndProcess(const UndoStep& step) {
  const Result<UniqueFd> pidfd = OpenPidfd(*step.process);
  if (!pidfd && pidfd.error().code == ESRCH) return {};
  if (!pidfd) return tl::unexpected(pidfd.error());
  const Status sent = SignalPidfd(pidfd->get(), SIGKILL);
  if (!sent && sent.error().code == ESRCH) return {};
  if (!sent) return sent;
  const MonoTime deadline = MonoNow() + step.deadline;
  while (true) {
    pollfd ready{pidfd->get(), POLLIN, 0};
    const auto left = std::chrono::ceil<Milliseconds>(deadline - MonoNow()).count();
    const int n = ::poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
    if (n == 1) return {};
    if (n < 0 && errno != EINTR) return FailErrno("wait for", "a process through its pidfd");
    if (n == 0) break;
  }
  const Result<ProcessStat> stat = ReadProcessStat(step.process->pid);
  return Fail("process " + std::to_string(step.process->pid) + " is still there " +
                  std::to_string(step.deadline.count()) + " ms after SIGKILL" +
                  (stat ? std::string(", in state ") + stat->state : std::string()) +
                  "; it hangs in the kernel, see /proc/" + std::to_string(step.process->pid) +
                  "/stack",
              ETIMEDOUT);
}

bool NeedsPath(UndoVerb verb) { return verb != UndoVerb::kEndProcess; }

}  // namespace

std::string_view ToString(UndoVerb verb) {
  for (const auto& known : kVerbs) {
    if (known.verb == verb) return known.name;
  }
  SHAKEDOWN_ASSERT(false);
}

Json ToJson(const UndoStep& step) {
  return Json{{"verb", ToString(step.verb)},
              {"path", NeedsPath(step.verb) ? Json(step.path) : Json()},
              {"process", step.process ? ToJson(*step.process) : Json()},
              {"deadline_ms", step.deadline.count()}};
}

Result<UndoStep> UndoStepFromJson(const Json& json) {
  const auto refuse = [&](const std::string& why) {
    return Fail("not an undo step: " + why + ": " + DumpJson(json));
  };
  UndoStep step;
  const std::string verb = StringField(json, "verb").value_or("");
  const auto* const known = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                         [&](const auto& entry) { return entry.name == verb; });
  if (known == std::end(kVerbs)) return refuse("unknown verb");
  step.verb = known->verb;
  const std::optional<std::string> path = StringField(json, "path");
  if (NeedsPath(step.verb) && !path) return refuse("no path");
  if (NeedsPath(step.verb)) step.path = *path;
  if (!Field(json, "process").is_null()) {
    Result<ProcessIdentity> process = IdentityFromJson(Field(json, "process"));
    if (!process) return refuse(process.error().message);
    step.process = *std::move(process);
  }
  if (step.verb == UndoVerb::kEndProcess && !step.process) return refuse("no process");
  const std::optional<int64_t> deadline_ms = IntField(json, "deadline_ms");
  if (!deadline_ms || *deadline_ms <= 0 || *deadline_ms > INT_MAX) return refuse("no deadline");
  step.deadline = Milliseconds(*deadline_ms);
  return step;
}

Status PlayUndo(const UndoStep& step) {
  switch (step.verb) {
    case UndoVerb::kRemoveBallast:
      return RemoveBallast(step);
    case UndoVerb::kRemoveTree:
      return RemoveTree(step);
    case UndoVerb::kEndProcess:
      if (!step.process) return Fail("cannot end a process: the undo step names none", EINVAL);
      return EndProcess(step);
  }
  SHAKEDOWN_ASSERT(false);
}

}  // namespace shakedown
