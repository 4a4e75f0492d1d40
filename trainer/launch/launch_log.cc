#include "trainer/launch/launch_log.h"

#include <utility>

#include "harness/base/log.h"

namespace shakedown {
namespace {

const char* NameOf(EventLevel level) {
  switch (level) {
    case EventLevel::kInfo:
      return "INFO";
    case EventLevel::kWarning:
      return "WARNING";
    case EventLevel::kError:
      return "ERROR";
  }
  return "";
}

}  // namespace

Result<LaunchLog> LaunchLog::Open(const std::filesystem::path& path) {
  Result<LineWriter> lines = LineWriter::Open(path);
  if (!lines) return tl::unexpected(lines.error());
  return LaunchLog(*std::move(lines));
}

void LaunchLog::Write(EventLevel level, std::string_view event, const std::string& message,
                      Json fields, MonoTime t) {
  // The time of the event, not of the writing, on both clocks.
  const WallTime wall{WallNow().ns - (MonoNow() - t).count()};
  Json line = {{"timestamp", FormatRfc3339(wall)},
               {"t_ns", t.ns},
               {"level", NameOf(level)},
               {"event", event},
               {"message", message}};
  line.update(fields);
  if (const Status written = lines_.Append(DumpJson(line)); !written) {
    LogError("launcher.jsonl: " + written.error().message);
  }
}

}  // namespace shakedown
