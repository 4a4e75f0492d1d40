// Saving checkpoints during training, at once or on a thread of its own.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/base/unique_fd.h"
#include "harness/wire/job.h"
#include "trainer/checkpoint/publish.h"

namespace shakedown {

struct SavedCheckpoint {
  CheckpointManifest manifest;
  Nanoseconds took{0};  // serialising and writing
};

// What came of a save, told on the thread that saves, as soon as it is known and before the next
// save begins.
struct SaveObserver {
  std::function<void(const SavedCheckpoint&)> saved;
  std::function<void(int64_t step, const PublishError&)> failed;
  // The save is complete, but an older checkpoint could not be removed.
  std::function<void(int64_t step, const Error&)> rotation_failed;
};

// Used by one thread. Only one process may save into a directory at a time.
class CheckpointSaver {
 public:
  // Turns a snapshot into bytes; called on the thread that saves.
  using Serialize = std::function<Result<SerializedCheckpoint>()>;

  // Removes what an earlier attempt's saves left torn.
  static Result<std::unique_ptr<CheckpointSaver>> Open(const std::filesystem::path& directory,
                                                       const CheckpointConfig& config,
                                                       SaveObserver observer);
  // Waits for a pending save, however long it takes.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // kSync: saves and returns. kAsync: waits until the save before is over (so that slow storage
  // slows training down instead of filling memory), hands over and returns. `serialize` must hold
  // all it needs: the training changes its state meanwhile.
  void Save(int64_t step, Serialize serialize);

  // Waits for a pending save, at most so long (nullopt: as long as it takes); false when it is
  // still pending then.
  bool Finish(std::optional<Nanoseconds> limit);

  // The last save that ended succeeded; true when there was none.
  bool last_succeeded() const;

 private:
  CheckpointSaver(UniqueFd directory, const CheckpointConfig& config, SaveObserver observer);
  void Run();
  void SaveNow(int64_t step, const Serialize& serialize);
  tl::expected<CheckpointManifest, PublishError> Publish(const Serialize& serialize, int64_t step);

  const UniqueFd directory_;
  const CheckpointConfig config_;
  const SaveObserver observer_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  std::function<void()> pending_;  // empty: none waits
  bool busy_ = false;              // one waits or is being saved
  bool closing_ = false;
  bool last_succeeded_ = true;
  std::function<void()> kept_back_;  // kReportsFailedSaveAtEnd

  std::thread writer_;  // kAsync only
};

}  // namespace shakedown
