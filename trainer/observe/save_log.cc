#include "trainer/observe/save_log.h"

#include <string>

#include "harness/wire/log_events.h"

namespace shakedown {
namespace {

void RecordSaved(EventLog& log, LedgerWriter& ledger, const SavedCheckpoint& saved) {
  const CheckpointManifest& manifest = saved.manifest;
  log.Write(EventLevel::kInfo, log_events::kCheckpointSaved,
            "checkpoint " + std::to_string(manifest.step) + " is saved",
            {{"checkpoint", manifest.step},
             {"file", manifest.file},
             {"bytes", manifest.bytes},
             {"write_ms", ToMs(saved.took)}});
  const Status recorded = ledger.Append(
      LedgerCheckpoint{static_cast<uint64_t>(manifest.step), manifest.digest, MonoNow().ns});
  if (!recorded) {
    // The training thread writes there as well and will end the rank at its next step.
    log.Write(
        EventLevel::kError, log_events::kRankFailed, recorded.error().message,
        {{"phase", "checkpoint"}, {"error", recorded.error().message}, {"exit_code", nullptr}});
  }
}

void RecordFailed(EventLog& log, CheckpointMode mode, int64_t step, const PublishError& failure) {
  log.Write(EventLevel::kError, log_events::kCheckpointFailed,
            "checkpoint " + std::to_string(step) + " is not saved (" + failure.operation +
                "); training goes on, and the checkpoints before it are still there",
            {{"checkpoint", step},
             {"operation", failure.operation},
             {"errno", failure.error.code},
             {"error", failure.error.message},
             {"mode", ToString(mode)}});
}

}  // namespace

SaveObserver RecordSaves(EventLog& log, LedgerWriter& ledger, CheckpointMode mode) {
  SaveObserver observer;
  observer.saved = [&log, &ledger](const SavedCheckpoint& saved) {
    RecordSaved(log, ledger, saved);
  };
  observer.failed = [&log, mode](int64_t step, const PublishError& failure) {
    RecordFailed(log, mode, step, failure);
  };
  observer.rotation_failed = [&log](int64_t step, const Error& error) {
    log.Write(EventLevel::kWarning, log_events::kRotationFailed,
              "an old checkpoint could not be removed; the directory will grow",
              {{"checkpoint", step}, {"errno", error.code}, {"error", error.message}});
  };
  return observer;
}

}  // namespace shakedown
