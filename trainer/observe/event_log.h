// log.jsonl: what the rank tells its operators (shape: harness/wire/log_events.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "harness/base/file.h"
#include "harness/base/status.h"
#include "harness/wire/json.h"

namespace shakedown {

enum class EventLevel { kInfo, kWarning, kError };

// Thread-safe: a line is one write(2) to a file opened for appending, so lines of two threads do
// not mix and a killed rank leaves at most one torn line.
class EventLog {
 public:
  static Result<std::unique_ptr<EventLog>> Open(const std::filesystem::path& path, int rank);

  // The step that lines written from now on belong to: the one that is being trained.
  void SetStep(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  int64_t step() const { return step_.load(std::memory_order_relaxed); }

  // `fields` is an object; its keys stand after the common ones. An error goes to stderr as well,
  // and so does any line that could not be written: a full disk must not hide why a rank ended.
  void Write(EventLevel level, std::string_view event, std::string_view message,
             const Json& fields = Json::object());

 private:
  EventLog(LineWriter file, int rank) : file_(std::move(file)), rank_(rank) {}

  LineWriter file_;
  const int rank_;
  std::atomic<int64_t> step_{0};
};

}  // namespace shakedown
