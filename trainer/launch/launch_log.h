// attempt-K/launcher.jsonl: what the launcher did and saw, as harness/wire/README.md lists it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "harness/base/file.h"
#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/json.h"

namespace shakedown {

enum class EventLevel { kInfo, kWarning, kError };

class LaunchLog {
 public:
  static Result<LaunchLog> Open(const std::filesystem::path& path);

  // `fields` is an object. `t` is when it happened. A line that cannot be written is reported on
  // stderr; the job goes on.
  void Write(EventLevel level, std::string_view event, const std::string& message, Json fields,
             MonoTime t = MonoNow());

 private:
  explicit LaunchLog(LineWriter lines) : lines_(std::move(lines)) {}
  LineWriter lines_;
};

}  // namespace shakedown
