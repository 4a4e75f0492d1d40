// Events of the job's own logs that checks and diagnosis look for. A line is one JSON object:
//   {"timestamp": RFC 3339 ms UTC, "t_ns": CLOCK_MONOTONIC, "level": "INFO|WARNING|ERROR",
//    "rank": R, "step": S, "event": "noun.past", "message": "a sentence", ...fields}
// launcher.jsonl has the same shape with "rank" only where a rank is spoken of. README.md lists the
// fields of each event.
#pragma once

namespace shakedown::log_events {

// Of a rank: attempt-K/rank-R/log.jsonl.
inline constexpr char kRankStarted[] = "rank.started";
inline constexpr char kGroupJoined[] = "group.joined";
inline constexpr char kStartedFresh[] = "training.started_fresh";
inline constexpr char kResumed[] = "training.resumed";
inline constexpr char kCheckpointRefused[] = "checkpoint.refused";  // at resume: torn, damaged
inline constexpr char kEpochStarted[] = "epoch.started";
inline constexpr char kCheckpointSaved[] = "checkpoint.saved";
inline constexpr char kCheckpointFailed[] = "checkpoint.failed";
inline constexpr char kRotationFailed[] =
    "checkpoint.rotation_failed";  // saved, but an old one stays
inline constexpr char kPeerLost[] = "peer.lost";
inline constexpr char kCollectiveTimeout[] = "collective.timeout";
inline constexpr char kMemoryExhausted[] = "memory.exhausted";
inline constexpr char kMemorySplit[] = "memory.split";  // the retry in parts succeeded
inline constexpr char kDataSlow[] = "data.slow";
inline constexpr char kWorkerReplaced[] = "worker.replaced";
inline constexpr char kWorkerDied[] = "worker.died";
inline constexpr char kTermReceived[] = "term.received";
inline constexpr char kTrainingFinished[] = "training.finished";
inline constexpr char kRankFailed[] = "rank.failed";

// Of the launcher: attempt-K/launcher.jsonl.
inline constexpr char kAttemptStarted[] = "attempt.started";
inline constexpr char kRankSpawned[] = "rank.spawned";
inline constexpr char kRankExited[] = "rank.exited";
inline constexpr char kWatchdogFired[] = "watchdog.fired";
inline constexpr char kStartupTimeout[] = "startup.timeout";
inline constexpr char kAttemptFailed[] = "attempt.failed";  // the exit report
inline constexpr char kRestartScheduled[] = "restart.scheduled";
inline constexpr char kRestartExhausted[] = "restart.exhausted";
inline constexpr char kAttemptFinished[] = "attempt.finished";
inline constexpr char kJobFinished[] = "job.finished";

}  // namespace shakedown::log_events
