// Writes observed.jsonl and injected.jsonl: one record, one write(2). A failed write (run directory
// full) never stops the undoing of a fault: it is remembered, and the run ends as ERROR. Some space
// is kept free from the beginning, so that a full directory can still take how the run ended.
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
  // An Error also when there is no space to keep free.
  static Result<Recorder> Open(const RunDir& run);

  void Observe(const char* event, Json fields, MonoTime t = MonoNow());
  void Secret(const char* event, Json fields, MonoTime t = MonoNow());
  void Inspection(const Json& record);  // checkpoints.jsonl

  // Before the last words of a run: how it ended, its seal and its verdict.
  void FreeReserve() { reserve_.Reset(); }

  // The first write that failed.
  const Status& status() const { return status_; }

 private:
  struct File {
    LineWriter lines;
    bool torn = false;  // a write failed, and part of its record may be there
  };
  void Write(File& file, const std::string& line);

  UniqueFd reserve_;
  File observed_, injected_, checkpoints_;
  Status status_;
};

}  // namespace shakedown
