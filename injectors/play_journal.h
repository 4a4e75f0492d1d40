// Playing a run's undo journal for a controller that is gone: by the reaper at once, by
// `shakedown clean` later.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/base/status.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

struct PlayedJournal {
  int undone = 0;  // steps played with success now
  // What could not be undone, or cannot be known: each says what remains and what to do.
  std::vector<std::string> remains;
  bool clean() const { return remains.empty(); }
};

// Plays the steps of journal.jsonl that are not marked undone, the last first, and appends what
// came of each to undone.jsonl (on disk when it returns). A step that fails does not stop the
// others. `by` is who plays: "reaper", "clean". A run without a journal has nothing to undo. Only
// one process plays at a time: EWOULDBLOCK for the second.
//
// REQUIRES: the run's controller is dead.
Result<PlayedJournal> PlayJournal(const RunDir& run, std::string_view by);

// Appends a record to undone.jsonl that is no undo: `event` is "controller.lost".
Status NoteInUndone(const RunDir& run, std::string_view by, std::string_view event);

}  // namespace shakedown
