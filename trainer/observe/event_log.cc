#include "trainer/observe/event_log.h"

#include <unistd.h>

#include <string>

#include "harness/base/time.h"
#include "trainer/defects/defect.h"

namespace shakedown {
namespace {

std::string_view Word(EventLevel level) {
  switch (level) {
    case EventLevel::kInfo:
      return "INFO";
    case EventLevel::kWarning:
      return "WARNING";
    case EventLevel::kError:
      return "ERROR";
  }
  return "ERROR";
}

}  // namespace

Result<std::unique_ptr<EventLog>> EventLog::Open(const std::filesystem::path& path, int rank) {
  Result<LineWriter> file = LineWriter::Open(path);
  if (!file) return tl::unexpected<Error>(file.error());
  return std::unique_ptr<EventLog>(new EventLog(std::move(*file), rank));
}

void EventLog::Write(EventLevel level, std::string_view event, std::string_view message,
                     const Json& fields) {
  Json line = Json::object();
  line["timestamp"] = FormatRfc3339(WallNow());
  line["t_ns"] = MonoNow().ns;
  if (level == EventLevel::kError && Planted(Defect::kLogsErrorsAsInfo)) level = EventLevel::kInfo;
  line["level"] = Word(level);
  line["rank"] = rank_;
  line["step"] = step() - (Planted(Defect::kLogsWrongStep) ? 1 : 0);
  line["event"] = event;
  line["message"] = message;
  for (const auto& [key, value] : fields.items()) line[key] = value;
  const std::string text = DumpJson(line);
  const Status written = file_.Append(text);
  if (level == EventLevel::kError || !written) {
    // Nothing can be done about a stderr that is gone.
    (void)WriteAll(STDERR_FILENO, text + "\n", "stderr");
  }
}

}  // namespace shakedown
