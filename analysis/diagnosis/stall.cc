#include "analysis/diagnosis/stall.h"

#include <algorithm>
#include <chrono>

#include "harness/wire/log_events.h"

namespace shakedown::diagnosis {
namespace {

using std::chrono::seconds;

// A rank whose collective timed out closes its connections before it can write its line, so a
// peer's "lost" may stand in the log first. It is the same moment.
constexpr Nanoseconds kSameMoment = seconds(1);

// The job's own clock where it is earlier: pages move on when the line is written, not when it
// arrives.
MonoTime Written(const LogLine& line) {
  return line.t.ns > 0 ? std::min(line.t, line.when()) : line.when();
}

void ForEachLine(const AttemptEvidence& attempt, auto&& f) {
  for (const LogLine& line : attempt.launcher) f(line);
  for (const ProcessEvidence& rank : attempt.ranks) {
    for (const LogLine& line : rank.log) f(line);
  }
}

std::string Speaker(const LogLine& line) {
  return line.writer ? "rank " + std::to_string(*line.writer) : "the launcher";
}

}  // namespace

int AttemptAt(const ObservedEvidence& evidence, MonoTime t) {
  int found = evidence.attempts.empty() ? 0 : evidence.attempts.front().attempt;
  for (const AttemptEvidence& attempt : evidence.attempts) {
    if (attempt.started && *attempt.started <= t) found = attempt.attempt;
  }
  return found;
}

std::optional<MonoTime> FirstFailedExit(const ObservedEvidence& evidence, int attempt) {
  for (const ProcessExit& exit : evidence.exits) {
    if (exit.attempt == attempt && exit.role == "rank" && exit.failed()) return exit.t;
  }
  return std::nullopt;
}

bool AttemptFailed(const ObservedEvidence& evidence, const AttemptEvidence& attempt) {
  const bool said =
      std::any_of(attempt.launcher.begin(), attempt.launcher.end(),
                  [](const LogLine& line) { return line.event == log_events::kAttemptFailed; });
  if (said || FirstFailedExit(evidence, attempt.attempt)) return true;
  const Event* job = evidence.First(events::kJobExited);
  return job != nullptr && attempt.attempt == evidence.attempts.back().attempt &&
         (StringField(job->fields, "signal") || IntField(job->fields, "code").value_or(0) != 0);
}

std::optional<Stall> FindStall(const ObservedEvidence& evidence, const AttemptEvidence& attempt) {
  std::optional<Stall> stall;
  const auto note = [&](MonoTime t, std::string text, Where where) {
    if (!stall || t < stall->noticed) stall = Stall{t, {std::move(text), std::move(where)}};
  };
  for (const Event* event : evidence.Named(events::kNoProgress)) {
    if (AttemptAt(evidence, event->t) != attempt.attempt) continue;
    note(event->t, "no rank passed any point any more (progress.stopped)",
         ObservedEvidence::At(*event));
  }
  std::optional<MonoTime> first_error;
  ForEachLine(attempt, [&](const LogLine& line) {
    const MonoTime t = Written(line);
    if (line.event == log_events::kCollectiveTimeout || line.event == log_events::kWatchdogFired) {
      note(t, Speaker(line) + " reports " + line.event, line.where);
    }
    if (line.event == log_events::kPeerLost || line.event == log_events::kRankFailed) {
      if (!first_error || t < *first_error) first_error = t;
    }
  });
  if (!stall) return std::nullopt;
  if (first_error && *first_error < stall->noticed) {
    if (stall->noticed - *first_error > kSameMoment) return std::nullopt;
    stall->noticed = *first_error;
  }
  const auto dead = FirstFailedExit(evidence, attempt.attempt);
  if (dead && *dead < stall->noticed) return std::nullopt;
  return stall;
}

}  // namespace shakedown::diagnosis
