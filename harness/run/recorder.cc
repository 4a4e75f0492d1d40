#include "harness/run/recorder.h"

namespace shakedown {

Result<Recorder> Recorder::Open(const RunDir& run) {
  Recorder recorder;
  const auto open = [](LineWriter& file, const std::filesystem::path& path) -> Status {
    Result<LineWriter> opened = LineWriter::Open(path);
    if (!opened) return tl::unexpected<Error>(opened.error());
    file = std::move(*opened);
    return {};
  };
  SHAKEDOWN_TRY(open(recorder.observed_, run.observed()));
  SHAKEDOWN_TRY(open(recorder.injected_, run.injected()));
  SHAKEDOWN_TRY(open(recorder.checkpoints_, run.checkpoints()));
  return recorder;
}

void Recorder::Write(LineWriter& file, const std::string& line) {
  Status written = file.Append(line);
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
