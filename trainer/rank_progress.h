// Where a rank is, for its fault points, its log and the report of what went wrong.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "harness/base/time.h"
#include "harness/wire/exit_code.h"
#include "injectors/probe/probe.h"
#include "trainer/observe/event_log.h"

namespace shakedown {

// Ends the rank with a status and a reason. Thrown only behind rank.h, where torch throws as well,
// and caught there.
struct RankFailure : std::runtime_error {
  RankFailure(RankExit status, const std::string& error)
      : std::runtime_error(error), exit(status) {}
  RankExit exit;
};

inline void OrFail(const Status& status, RankExit exit) {
  if (!status) throw RankFailure(exit, status.error().message);
}

// Of the training thread.
class RankProgress {
 public:
  RankProgress(EventLog& log, int64_t step) : log_(log), step_(step) {}

  // Being trained; before the first, the one resumed from.
  int64_t step() const { return step_; }
  void SetStep(int64_t step) {
    step_ = step;
    log_.SetStep(step);
  }

  // init, resume, data, step, forward, backward, optimizer, checkpoint, teardown.
  const char* phase() const { return phase_; }
  MonoTime phase_begin() const { return phase_begin_; }
  void Enter(const char* phase) {
    phase_ = phase;
    phase_begin_ = MonoNow();
  }

  void Pass(Point point) const { probe::Pass(point, static_cast<uint32_t>(step_)); }
  void Log(EventLevel level, const char* event, const std::string& message,
           const Json& fields = Json::object()) const {
    log_.Write(level, event, message, fields);
  }

 private:
  EventLog& log_;
  int64_t step_;
  const char* phase_ = "init";
  MonoTime phase_begin_ = MonoNow();
};

}  // namespace shakedown
