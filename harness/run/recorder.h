// Writes observed.jsonl and injected.jsonl: one record, one write(2). A failed write (run directory
// full) never stops the undoing of a fault: it is remembered, and the run ends as ERROR.
#pragma once

#include <filesystem>

#include "harness/base/file.h"
#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/event.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

class Recorder {
 public:
  static Result<Recorder> Open(const RunDir& run);

  void Observe(const char* event, Json fields, MonoTime t = MonoNow());
  void Secret(const char* event, Json fields, MonoTime t = MonoNow());
  void Inspection(const Json& record);  // checkpoints.jsonl

  // The first write that failed.
  const Status& status() const { return status_; }

 private:
  void Write(LineWriter& file, const std::string& line);

  LineWriter observed_, injected_, checkpoints_;
  Status status_;
};

}  // namespace shakedown
