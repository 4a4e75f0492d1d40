// What runs left behind whose controller is dead, and stopping a run from outside. Normally the
// reaper has undone everything; here is for when it was killed too, or could not.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/process/identity.h"
#include "harness/wire/json.h"

namespace shakedown {

struct CleanedRun {
  std::string run_dir;
  int undone = 0;
  std::vector<std::string> remains;  // what could not be undone; each says what to do
};

struct LiveRun {
  std::string run_dir;
  ProcessIdentity controller;
};

struct CleanReport {
  std::vector<CleanedRun> runs;  // those that had something to undo
  std::vector<LiveRun> live;     // left alone
  bool clean() const;            // nothing remains of dead runs
};

// `path` is a run directory or a folder with runs at any depth. Plays the undo journals of dead
// runs, and writes what came of it to their undone.jsonl. A reaper that is still at work for a dead
// controller is waited for. A run of another user is not touched: its journal says what to remove
// and whom to kill. An Error: there is no such directory.
Result<CleanReport> Clean(const std::filesystem::path& path);

struct AbortReport {
  std::string run_dir;
  bool was_running = false;
  int undone = 0;  // by us; what the controller undid is in its own evidence
  std::vector<std::string> remains;
};

// Tells the run's controller to stop (SIGTERM) and waits until it and its reaper have ended; then
// Clean. A controller that does not stop within the deadline is named among what remains, and
// nothing else is done. An Error: this is no run directory.
Result<AbortReport> AbortRun(const std::filesystem::path& run_dir,
                             Milliseconds deadline = Milliseconds(60'000));

Json ToJson(const CleanReport& report);
Json ToJson(const AbortReport& report);
// For people; several lines, each with its newline.
std::string Describe(const CleanReport& report);
std::string Describe(const AbortReport& report);

}  // namespace shakedown
