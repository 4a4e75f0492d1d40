// When what happened, on the one monotonic clock of the machine: progress of each rank per attempt,
// windows around the faults, recoveries, and a merged list for reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/evidence/observed.h"
#include "analysis/evidence/secret.h"
#include "harness/base/time.h"

namespace shakedown {

struct StepMark {
  int64_t step = 0;
  std::optional<MonoTime> ledger;  // the rank's word
  std::optional<MonoTime> seen;    // the controller's: first page sample at or beyond this step
};

struct RankTimeline {
  int rank = 0;
  std::optional<int64_t> resumed_from;  // of its ledger; 0: fresh start
  std::optional<MonoTime> resumed_at;
  std::vector<StepMark> steps;  // by step, each once

  int64_t last_step() const { return steps.empty() ? 0 : steps.back().step; }
  const StepMark* Find(int64_t step) const;
};

struct AttemptTimeline {
  int attempt = 0;
  std::optional<MonoTime> started;
  std::optional<MonoTime> ended;
  std::vector<RankTimeline> ranks;  // sorted by rank; one for each rank of the job

  int64_t CompletedByAll() const;  // 0: none
  int64_t CompletedByAny() const;
  // What all ranks that left a ledger started from; nullopt: none left one, or they disagree.
  std::optional<int64_t> ResumedFrom() const;
};

enum class Window { kBefore, kDuring, kAfter };  // of the first fault's begin, the last one's end

// What an attempt that is not the first did about the end of the one before it, or what a job that
// went on did after the last fault.
struct Recovery {
  int attempt = 0;               // that recovered
  std::optional<MonoTime> zero;  // t0 of the last fault before it
  int64_t reached = 0;           // largest step that any rank had completed before
  std::optional<int64_t> resumed_from;
  std::optional<int64_t> lost_steps;  // reached - resumed_from; 0 without a restart
  // First step beyond `reached`, completed by all ranks: seen by the controller, and by the
  // ledgers.
  std::optional<MonoTime> new_step_seen;
  std::optional<MonoTime> new_step_ledger;
  std::optional<Nanoseconds> rework;  // loaded, until `reached` was reached again by all

  std::optional<Nanoseconds> ToNewStep() const;  // from zero, on the controller's clock
};

struct TimelineEntry {
  MonoTime t;
  int attempt = 0;
  std::optional<int> rank;
  std::string source;  // observed, injected, log, launcher, checkpoints, ledger
  std::string what;
  Where where;
};

struct Timeline {
  std::optional<MonoTime> begin;      // run.started
  std::optional<MonoTime> zero;       // t0 of the first fault
  std::optional<MonoTime> fault_end;  // the last fault was undone or its process ended
  std::vector<AttemptTimeline> attempts;
  std::vector<Recovery> recoveries;  // one per restart; else one for a fault that was lived through
  std::vector<TimelineEntry> entries;  // by time

  const AttemptTimeline* attempt(int k) const;
  const AttemptTimeline* last() const { return attempts.empty() ? nullptr : &attempts.back(); }
  Window WindowOf(MonoTime t) const;
};

Timeline BuildTimeline(const ObservedEvidence& observed, const SecretEvidence& secret);

}  // namespace shakedown
