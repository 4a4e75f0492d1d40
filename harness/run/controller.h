// One run: provision, start the job, observe, inject, collect, seal. Judging is not done here: it
// needs the run directory and nothing else.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "harness/base/time.h"
#include "harness/run/binaries.h"
#include "harness/wire/json.h"
#include "harness/wire/scenario.h"
#include "injectors/fault.h"

namespace shakedown {

// What is told while a run goes on, for a live view.
struct RunProgress {
  enum class What { kStarting, kAttempt, kStep, kInjected, kNoticed, kEnding };
  What what = What::kStarting;
  int attempt = 0;
  uint64_t step = 0;
  uint64_t steps = 0;
  std::string text;
};

struct RunRequest {
  const Plan& plan;
  std::filesystem::path run_dir;  // absolute, existing, empty
  Binaries binaries;
  Machine machine;
  std::string command;  // what a person types to repeat this run
  // Content of run.json beside what the controller adds itself: reference, calibration.
  Json notes = Json::object();
  // Ledgers and weights of the undisturbed run, linked or copied into the run directory; empty:
  // none.
  std::filesystem::path reference_dir;
  std::function<void(const RunProgress&)> progress;
};

struct RunOutcome {
  enum class How { kCompleted, kInterrupted, kTimedOut, kFailed };
  How how = How::kCompleted;
  std::string reason;  // for all but kCompleted
  int signal = 0;      // kInterrupted: the one that was received
  bool dirty = false;  // something of ours could not be undone; `reason` or the journal say what
  Nanoseconds job_wall{0};
};

// Never leaves anything running or mounted behind, whatever it returns, unless `dirty`.
RunOutcome ExecuteRun(const RunRequest& request);

// A fresh folder "<name>-<time>-<random>" below `parent`, which is made when missing.
Result<std::filesystem::path> MakeRunDirectory(const std::filesystem::path& parent,
                                               const std::string& name);

}  // namespace shakedown
