// Records of observed.jsonl and injected.jsonl: {"t_ns": ..., "event": "noun.past", fields}.
// t_ns is CLOCK_MONOTONIC of the controller. README.md lists the fields of each event.
#pragma once

#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/json.h"

namespace shakedown {

struct Event {
  MonoTime t;
  std::string name;
  Json fields = Json::object();  // without t_ns and event
  int line = 0;                  // in its file, from 1; set by readers
};

std::string EncodeEvent(const Event& event);
Result<Event> DecodeEvent(std::string_view line);

// A jsonl file of events. A last line without newline is expected of a killed writer and is not
// damage; any other line that is no record is.
struct EventFile {
  std::vector<Event> events;
  std::vector<int> damaged_lines;
  bool torn_tail = false;
};
EventFile ParseEvents(std::string_view text);

namespace events {  // observed
inline constexpr char kRunStarted[] = "run.started";
inline constexpr char kAttemptStarted[] = "attempt.started";
inline constexpr char kAttemptEnded[] = "attempt.ended";
inline constexpr char kProcessHello[] = "process.hello";
inline constexpr char kRankJoined[] = "rank.joined";
inline constexpr char kProcessExited[] = "process.exited";
inline constexpr char kPageSampled[] = "page.sampled";
inline constexpr char kLineArrived[] = "line.arrived";
inline constexpr char kFilePublished[] = "file.published";
inline constexpr char kNoProgress[] = "progress.stopped";  // the harness's own notice
inline constexpr char kStacksCollected[] = "stacks.collected";
inline constexpr char kLoadSampled[] = "load.sampled";
inline constexpr char kJobExited[] = "job.exited";
inline constexpr char kLeftoversInspected[] = "leftovers.inspected";
inline constexpr char kRunEnded[] = "run.ended";
}  // namespace events

namespace secret_events {  // injected
inline constexpr char kProcessArmed[] = "process.armed";
inline constexpr char kHoldEntered[] = "hold.entered";
inline constexpr char kHoldReleased[] = "hold.released";
inline constexpr char kFaultInjected[] = "fault.injected";
inline constexpr char kFaultFailed[] = "fault.failed";
inline constexpr char kWitnessed[] = "fault.witnessed";
inline constexpr char kFaultUndone[] = "fault.undone";
inline constexpr char kFaultMissed[] = "fault.missed";
}  // namespace secret_events

}  // namespace shakedown
