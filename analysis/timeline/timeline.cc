#include "analysis/timeline/timeline.h"

#include <algorithm>
#include <map>

namespace shakedown {
namespace {

// Enough for a report; a run of hours keeps its first records.
constexpr size_t kMaxEntries = 200'000;

RankTimeline BuildRank(const ObservedEvidence& observed, const AttemptEvidence& attempt, int rank) {
  RankTimeline out;
  out.rank = rank;
  std::map<int64_t, StepMark> marks;
  const ProcessEvidence* process = attempt.rank(rank);
  if (process != nullptr && process->ledger) {
    const RankLedger& ledger = *process->ledger;
    if (ledger.start) {
      out.resumed_from = static_cast<int64_t>(ledger.start->step);
      out.resumed_at = MonoTime{ledger.start->t_ns};
    }
    for (const LedgerStep& row : ledger.steps) {
      const auto step = static_cast<int64_t>(row.step);
      marks[step].step = step;
      marks[step].ledger = MonoTime{row.t_ns};
    }
  }
  // Steps between two samples get the time of the later one: an upper bound, never too early.
  int64_t seen = out.resumed_from.value_or(0);
  for (const PageSample& page : observed.pages) {
    if (page.attempt != attempt.attempt || page.rank != rank || page.worker) continue;
    if (page.last_step <= seen || page.last_step_ns <= 0) continue;
    // An untrusted page could name a step that would take forever to walk to.
    const int64_t limit = observed.job ? observed.job->steps : 0;
    for (int64_t step = seen + 1; step <= std::min(page.last_step, limit); ++step) {
      marks[step].step = step;
      marks[step].seen = page.t;
    }
    seen = page.last_step;
  }
  for (const auto& [step, mark] : marks) out.steps.push_back(mark);
  return out;
}

AttemptTimeline BuildAttempt(const ObservedEvidence& observed, const AttemptEvidence& attempt) {
  AttemptTimeline out;
  out.attempt = attempt.attempt;
  out.started = attempt.started;
  out.ended = attempt.ended;
  const int ranks = observed.job ? observed.job->ranks : 0;
  for (int r = 0; r < ranks; ++r) out.ranks.push_back(BuildRank(observed, attempt, r));
  return out;
}

// The ledger's word for a step, or the controller's where there is no ledger.
std::optional<MonoTime> Completed(const StepMark& mark) {
  return mark.ledger ? mark.ledger : mark.seen;
}

// When the last rank completed `step` in `attempt`; nullopt when one did not.
std::optional<MonoTime> AllCompleted(const AttemptTimeline& attempt, int64_t step,
                                     std::optional<MonoTime> StepMark::*clock) {
  std::optional<MonoTime> latest;
  if (attempt.ranks.empty()) return std::nullopt;
  for (const RankTimeline& rank : attempt.ranks) {
    const StepMark* mark = rank.Find(step);
    if (mark == nullptr || !(mark->*clock)) return std::nullopt;
    latest = std::max(latest.value_or(*(mark->*clock)), *(mark->*clock));
  }
  return latest;
}

// Looks for the first new step in this attempt and all later ones: the attempt that recovers may
// fail again before it gets beyond the old mark.
void FindNewStep(const std::vector<AttemptTimeline>& attempts, size_t from, Recovery* recovery) {
  const int64_t step = recovery->reached + 1;
  for (size_t k = from; k < attempts.size(); ++k) {
    const auto seen = AllCompleted(attempts[k], step, &StepMark::seen);
    const auto ledger = AllCompleted(attempts[k], step, &StepMark::ledger);
    if (!seen && !ledger) continue;
    recovery->new_step_seen = seen;
    recovery->new_step_ledger = ledger;
    return;
  }
}

Recovery RestartRecovery(const Timeline& timeline, size_t k, const std::vector<MonoTime>& zeros) {
  const AttemptTimeline& attempt = timeline.attempts[k];
  Recovery out;
  out.attempt = attempt.attempt;
  for (const MonoTime zero : zeros) {
    if (attempt.started && zero < *attempt.started) out.zero = zero;
  }
  for (size_t j = 0; j < k; ++j) {
    out.reached = std::max(out.reached, timeline.attempts[j].CompletedByAny());
  }
  out.resumed_from = attempt.ResumedFrom();
  if (out.resumed_from) out.lost_steps = out.reached - *out.resumed_from;
  FindNewStep(timeline.attempts, k, &out);
  const auto regained = AllCompleted(attempt, out.reached, &StepMark::ledger);
  std::optional<MonoTime> loaded;
  for (const RankTimeline& rank : attempt.ranks) {
    if (rank.resumed_at) loaded = std::max(loaded.value_or(*rank.resumed_at), *rank.resumed_at);
  }
  if (out.lost_steps == 0) {
    out.rework = Nanoseconds(0);
  } else if (regained && loaded) {
    out.rework = *regained - *loaded;
  }
  return out;
}

// A fault that the job lived through: the first step that is new after it began.
std::optional<Recovery> LivedThrough(const Timeline& timeline, MonoTime zero) {
  if (timeline.attempts.empty()) return std::nullopt;
  const AttemptTimeline& attempt = timeline.attempts.front();
  Recovery out;
  out.attempt = attempt.attempt;
  out.zero = zero;
  for (const RankTimeline& rank : attempt.ranks) {
    for (const StepMark& mark : rank.steps) {
      const auto when = Completed(mark);
      if (when && *when < zero) out.reached = std::max(out.reached, mark.step);
    }
  }
  out.lost_steps = 0;
  out.rework = Nanoseconds(0);
  FindNewStep(timeline.attempts, 0, &out);
  return out;
}

// One fault ends when it is undone, or, when nothing undoes it, with the process that it acted on.
MonoTime EndOf(const ObservedEvidence& observed, const SecretEvidence& secret,
               const InjectedRecord& injected) {
  for (const FaultNote& note : secret.undone) {
    if (note.injection == injected.injection) return note.t;
  }
  for (const ProcessExit& exit : observed.exits) {
    if (exit.attempt == injected.place.attempt && exit.rank == injected.place.rank &&
        exit.worker == injected.place.worker && exit.t >= *injected.t0) {
      return exit.t;
    }
  }
  return *injected.t0;
}

std::optional<MonoTime> FaultEnd(const ObservedEvidence& observed, const SecretEvidence& secret) {
  std::optional<MonoTime> end;
  for (const InjectedRecord& injected : secret.injected) {
    if (!injected.t0) continue;
    const MonoTime ended = EndOf(observed, secret, injected);
    end = std::max(end.value_or(ended), ended);
  }
  return end;
}

std::optional<int> RankOf(const Json& fields) {
  const auto rank = IntField(fields, "rank");
  return rank && *rank >= 0 && *rank < 1'000'000 ? std::optional(static_cast<int>(*rank))
                                                 : std::nullopt;
}

void AddEntries(const ObservedEvidence& observed, const SecretEvidence& secret, Timeline* out) {
  auto& entries = out->entries;
  for (const Event& event : observed.events) {
    if (event.name == events::kPageSampled || event.name == events::kLineArrived ||
        event.name == events::kLoadSampled) {
      continue;  // many, and told better by steps and lines
    }
    entries.push_back({event.t, static_cast<int>(IntField(event.fields, "attempt").value_or(0)),
                       RankOf(event.fields), "observed", event.name, ObservedEvidence::At(event)});
  }
  for (const LogLine* line : observed.AllLines()) {
    entries.push_back({line->when(), line->attempt, line->writer ? line->writer : line->rank,
                       line->writer ? "log" : "launcher",
                       line->level + " " + line->event + ": " + line->message, line->where});
  }
  for (const InjectedRecord& injected : secret.injected) {
    entries.push_back({injected.t0.value_or(injected.t), injected.place.attempt,
                       injected.place.rank, "injected",
                       injected.fault + " at " + injected.place.point + " of step " +
                           std::to_string(injected.place.step),
                       injected.where});
  }
  for (const FaultNote& note : secret.undone) {
    entries.push_back({note.t, 0, std::nullopt, "injected", "fault undone", note.where});
  }
  if (observed.checkpoints) {
    for (const CheckpointRecord& record : *observed.checkpoints) {
      const auto newest = record.NewestVerified();
      entries.push_back({record.t, record.attempt, record.rank, "checkpoints",
                         record.reason + ": newest verified checkpoint " +
                             (newest ? std::to_string(*newest) : std::string("none")),
                         record.where});
    }
  }
  if (entries.size() > kMaxEntries) entries.resize(kMaxEntries);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TimelineEntry& a, const TimelineEntry& b) { return a.t < b.t; });
}

}  // namespace

const StepMark* RankTimeline::Find(int64_t step) const {
  const auto it =
      std::lower_bound(steps.begin(), steps.end(), step,
                       [](const StepMark& mark, int64_t wanted) { return mark.step < wanted; });
  return it == steps.end() || it->step != step ? nullptr : &*it;
}

int64_t AttemptTimeline::CompletedByAll() const {
  if (ranks.empty()) return 0;
  int64_t least = ranks.front().last_step();
  for (const RankTimeline& rank : ranks) least = std::min(least, rank.last_step());
  return least;
}

int64_t AttemptTimeline::CompletedByAny() const {
  int64_t most = 0;
  for (const RankTimeline& rank : ranks) most = std::max(most, rank.last_step());
  return most;
}

std::optional<int64_t> AttemptTimeline::ResumedFrom() const {
  std::optional<int64_t> from;
  for (const RankTimeline& rank : ranks) {
    if (!rank.resumed_from) continue;
    if (from && *from != *rank.resumed_from) return std::nullopt;
    from = rank.resumed_from;
  }
  return from;
}

std::optional<Nanoseconds> Recovery::ToNewStep() const {
  if (!zero || !new_step_seen) return std::nullopt;
  return *new_step_seen - *zero;
}

const AttemptTimeline* Timeline::attempt(int k) const {
  for (const AttemptTimeline& a : attempts) {
    if (a.attempt == k) return &a;
  }
  return nullptr;
}

Window Timeline::WindowOf(MonoTime t) const {
  if (!zero || t < *zero) return Window::kBefore;
  return fault_end && t <= *fault_end ? Window::kDuring : Window::kAfter;
}

Timeline BuildTimeline(const ObservedEvidence& observed, const SecretEvidence& secret) {
  Timeline out;
  if (!observed.events.empty()) out.begin = observed.events.front().t;
  const std::vector<MonoTime> zeros = secret.Zeros();
  if (!zeros.empty()) out.zero = zeros.front();
  out.fault_end = FaultEnd(observed, secret);
  for (const AttemptEvidence& attempt : observed.attempts) {
    out.attempts.push_back(BuildAttempt(observed, attempt));
  }
  for (size_t k = 1; k < out.attempts.size(); ++k) {
    out.recoveries.push_back(RestartRecovery(out, k, zeros));
  }
  if (out.recoveries.empty() && out.zero) {
    if (const auto recovery = LivedThrough(out, zeros.back())) out.recoveries.push_back(*recovery);
  }
  AddEntries(observed, secret, &out);
  return out;
}

}  // namespace shakedown
