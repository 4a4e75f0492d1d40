#include "trainer/checkpoint/publish.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdio>

#include "harness/base/unique_fd.h"
#include "injectors/probe/probe.h"
#include "trainer/defects/defect.h"

namespace shakedown {
namespace {

using Outcome = tl::expected<void, PublishError>;

tl::unexpected<PublishError> Failed(std::string operation, std::string_view on, int code = -1) {
  tl::unexpected<Error> error = FailErrno(operation, on, code);
  return tl::unexpected(PublishError{std::move(operation), std::move(error.value())});
}

// The errno that the probe wants the next operation to end with, or 0.
int InjectedErrno(Point point, int64_t step) {
  const probe::Verdict verdict = probe::Pass(point, static_cast<uint32_t>(step));
  return verdict.action == ArmAction::kIoError ? static_cast<int>(verdict.argument) : 0;
}

// write(2) for one checkpoint file. `injected`: as on a disk that fills up, a part is written and
// the next call fails.
class Writer {
 public:
  Writer(int fd, size_t bytes, int injected) : fd_(fd), injected_(injected), room_(bytes / 2) {}
  ssize_t Write(const char* data, size_t bytes) {
    if (injected_ != 0) {
      if (room_ == 0) {
        errno = injected_;
        return -1;
      }
      bytes = std::min(bytes, room_);
      room_ -= bytes;
    }
    return ::write(fd_, data, bytes);
  }

 private:
  const int fd_;
  const int injected_;
  size_t room_;
};

bool WriteFile(Writer writer, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = writer.Write(bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string TemporaryName() {
  uint64_t random = 0;
  while (::getrandom(&random, sizeof random, 0) != sizeof random) SHAKEDOWN_ASSERT(errno == EINTR);
  char text[32];
  std::snprintf(text, sizeof text, "%s%016llx", kCheckpointTemporaryPrefix,
                static_cast<unsigned long long>(random));
  return text;
}

// How one file gets onto the disk; the points are the file's, the manifest has none of its own.
struct FilePoints {
  Point write = Point::kNone;
  Point fsync = Point::kNone;
  Point rename = Point::kNone;
};

int InjectedAt(Point point, int64_t step) {
  return point == Point::kNone ? 0 : InjectedErrno(point, step);
}

Outcome PutFile(int directory_fd, const std::string& name, std::string_view bytes, int64_t step,
                const FilePoints& points, const std::string& prefix) {
  const std::string temporary = TemporaryName();
  UniqueFd fd(
      ::openat(directory_fd, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return Failed(prefix + "create", temporary);
  const int write_error = InjectedAt(points.write, step);
  if (!WriteFile(Writer(fd.get(), bytes.size(), write_error), bytes)) {
    return Failed(prefix + "write", temporary);
  }
  const int fsync_error = InjectedAt(points.fsync, step);
  if (fsync_error != 0 || ::fsync(fd.get()) != 0) {
    return Failed(prefix + "fsync", temporary, fsync_error != 0 ? fsync_error : errno);
  }
  const int rename_error = InjectedAt(points.rename, step);
  if (rename_error != 0 ||
      ::renameat(directory_fd, temporary.c_str(), directory_fd, name.c_str()) != 0) {
    return Failed(prefix + "rename", name, rename_error != 0 ? rename_error : errno);
  }
  if (::fsync(directory_fd) != 0) return Failed(prefix + "fsync directory", name);
  return {};
}

// A save that cannot succeed is not begun. Bytes of a file system without quota of its own
// (f_blocks 0) cannot be counted.
Outcome CheckSpace(int directory_fd, size_t bytes) {
  struct statvfs space {};
  if (::fstatvfs(directory_fd, &space) != 0) return Failed("space", "the checkpoint directory");
  if (space.f_blocks == 0) return {};
  const uint64_t free = uint64_t{space.f_bavail} * space.f_frsize;
  if (free < bytes) {
    return tl::unexpected(PublishError{
        "space", Error{"cannot save: " + std::to_string(bytes) + " bytes are needed, " +
                           std::to_string(free) + " are free on the checkpoint directory",
                       ENOSPC}});
  }
  return {};
}

}  // namespace

tl::expected<CheckpointManifest, PublishError> PublishCheckpoint(int directory_fd,
                                                                 SerializedCheckpoint checkpoint) {
  CheckpointManifest& manifest = checkpoint.manifest;
  const int64_t step = manifest.step;
  manifest.file = CheckpointFileName(step);
  manifest.bytes = static_cast<int64_t>(checkpoint.bytes.size());
  manifest.digest = Xxh3Of(checkpoint.bytes);
  const std::string text = DumpPretty(ToJson(manifest)) + "\n";
  if (auto space = CheckSpace(directory_fd, checkpoint.bytes.size() + text.size()); !space) {
    return tl::unexpected(space.error());
  }
  const auto publish = [&] {
    return PutFile(directory_fd, CheckpointManifestName(step), text, step, {}, "manifest ");
  };
  if (Planted(Defect::kPublishesBeforeWriting) || Planted(Defect::kTrustsManifest)) {
    if (auto published = publish(); !published) return tl::unexpected(published.error());
  }
  const FilePoints points{Point::kCheckpointWrite, Point::kCheckpointFsync,
                          Point::kCheckpointRename};
  if (auto file = PutFile(directory_fd, manifest.file, checkpoint.bytes, step, points, ""); !file) {
    return tl::unexpected(file.error());
  }
  if (const int error = InjectedErrno(Point::kCheckpointPublish, step); error != 0) {
    return Failed("manifest create", CheckpointManifestName(step), error);
  }
  if (auto published = publish(); !published) return tl::unexpected(published.error());
  return manifest;
}

}  // namespace shakedown
