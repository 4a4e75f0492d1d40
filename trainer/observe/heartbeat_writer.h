// The rank's side of the launcher's progress watchdog (harness/wire/heartbeat.h).
#pragma once

#include <cstdint>
#include <optional>

#include "harness/base/status.h"
#include "harness/wire/heartbeat.h"

namespace shakedown {

// Written by the training thread only, and only for a step that is complete. Without a descriptor
// (a rank started by hand) the beats go nowhere.
class HeartbeatWriter {
 public:
  // Maps the launcher's memory and closes the descriptor, so that data workers do not inherit it.
  static Result<HeartbeatWriter> Open(std::optional<int> fd);
  ~HeartbeatWriter();
  HeartbeatWriter(HeartbeatWriter&& other) noexcept;
  HeartbeatWriter& operator=(HeartbeatWriter&&) = delete;

  void Ready();
  void StepCompleted(int64_t step);

 private:
  HeartbeatWriter() = default;
  Heartbeat* page_ = nullptr;
};

}  // namespace shakedown
