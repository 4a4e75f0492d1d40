#include "harness/run/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace shakedown {
namespace {

// Enough for the last records, the seal and the verdict of a large run.
constexpr off_t kReserve = 256 << 10;

// A file without a name, whose blocks are free again when it is closed.
Result<UniqueFd> Reserve(const std::filesystem::path& directory) {
  std::string path = (directory / ".reserve-XXXXXX").native();
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return FailErrno("create a file in", directory.native());
  ::unlink(path.c_str());
  if (const int error = ::posix_fallocate(fd.get(), 0, kReserve); error != 0) {
    return FailErrno("keep 256 KiB free in", directory.native(), error);
  }
  return fd;
}

}  // namespace

Result<Recorder> Recorder::Open(const RunDir& run) {
  Recorder recorder;
  Result<UniqueFd> reserve = Reserve(run.root());
  if (!reserve) return tl::unexpected<Error>(reserve.error());
  recorder.reserve_ = std::move(*reserve);
  const auto open = [](File& file, const std::filesystem::path& path) -> Status {
    Result<LineWriter> opened = LineWriter::Open(path);
    if (!opened) return tl::unexpected<Error>(opened.error());
    file.lines = std::move(*opened);
    return {};
  };
  SHAKEDOWN_TRY(open(recorder.observed_, run.observed()));
  SHAKEDOWN_TRY(open(recorder.injected_, run.injected()));
  SHAKEDOWN_TRY(open(recorder.checkpoints_, run.checkpoints()));
  return recorder;
}

void Recorder::Write(File& file, const std::string& line) {
  // What a failed write left must not swallow the record that follows.
  Status written = file.lines.Append(file.torn ? "\n" + line : line);
  file.torn = !written;
  if (!written && status_) status_ = written;
}

void Recorder::Observe(const char* event, Json fields, MonoTime t) {
  Write(observed_, EncodeEvent(Event{t, event, std::move(fields)}));
}

void Recorder::Secret(const char* event, Json fields, MonoTime t) {
  Write(injected_, EncodeEvent(Event{t, event, std::move(fields)}));
}

void Recorder::Inspection(const Json& record) { Write(checkpoints_, DumpJson(record)); }

}  // namespace shakedown
