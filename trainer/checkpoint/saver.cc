#include "trainer/checkpoint/saver.h"

#include <fcntl.h>

#include <utility>

#include "injectors/probe/probe.h"
#include "trainer/checkpoint/retain.h"
#include "trainer/defects/defect.h"

namespace shakedown {

Result<std::unique_ptr<CheckpointSaver>> CheckpointSaver::Open(
    const std::filesystem::path& directory, const CheckpointConfig& config, SaveObserver observer) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("open the checkpoint directory", directory.native());
  if (Status removed = RemoveTemporaries(fd.get()); !removed) {
    return Wrap(
        "cannot clear torn files from the checkpoint directory '" + directory.native() + "'",
        removed.error());
  }
  return std::unique_ptr<CheckpointSaver>(
      new CheckpointSaver(std::move(fd), config, std::move(observer)));
}

CheckpointSaver::CheckpointSaver(UniqueFd directory, const CheckpointConfig& config,
                                 SaveObserver observer)
    : directory_(std::move(directory)), config_(config), observer_(std::move(observer)) {
  if (config_.mode == CheckpointMode::kAsync) writer_ = std::thread([this] { Run(); });
}

CheckpointSaver::~CheckpointSaver() {
  if (kept_back_) kept_back_();
  if (!writer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  writer_.join();
}

void CheckpointSaver::Save(int64_t step, Serialize serialize) {
  if (config_.mode == CheckpointMode::kSync) {
    SaveNow(step, serialize);
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  pending_ = [this, step, serialize = std::move(serialize)] { SaveNow(step, serialize); };
  busy_ = true;
  changed_.notify_all();
}

bool CheckpointSaver::Finish(std::optional<Nanoseconds> limit) {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return !busy_; };
  if (limit) return changed_.wait_for(lock, *limit, idle);
  changed_.wait(lock, idle);
  return true;
}

bool CheckpointSaver::last_succeeded() const {
  const std::lock_guard lock(mutex_);
  return last_succeeded_;
}

void CheckpointSaver::Run() {
  probe::SetLane(Lane::kWriter);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return pending_ || closing_; });
    if (!pending_) return;
    const std::function<void()> save = std::exchange(pending_, nullptr);
    lock.unlock();
    save();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

tl::expected<CheckpointManifest, PublishError> CheckpointSaver::Publish(const Serialize& serialize,
                                                                        int64_t step) {
  if (Status removed = RemoveTemporaries(directory_.get()); !removed) {
    return tl::unexpected(PublishError{"remove", removed.error()});
  }
  probe::Pass(Point::kCheckpointSerialize, static_cast<uint32_t>(step));
  if (Planted(Defect::kRotatesBeforeSaving)) RemoveAllCheckpoints(directory_.get());
  Result<SerializedCheckpoint> checkpoint = serialize();
  if (!checkpoint) return tl::unexpected(PublishError{"serialize", checkpoint.error()});
  return PublishCheckpoint(directory_.get(), std::move(*checkpoint));
}

void CheckpointSaver::SaveNow(int64_t step, const Serialize& serialize) {
  const MonoTime begin = MonoNow();
  const auto manifest = Publish(serialize, step);
  {
    const std::lock_guard lock(mutex_);
    last_succeeded_ = manifest.has_value();
  }
  if (!manifest) {
    probe::CheckpointFailed(static_cast<uint64_t>(step), manifest.error().error.code);
    if (Planted(Defect::kRecordsFailedSave)) {
      CheckpointManifest claimed;
      claimed.step = step;
      claimed.file = CheckpointFileName(step);
      observer_.saved({claimed, MonoNow() - begin});
      return;
    }
    if (Planted(Defect::kReportsFailedSaveAtEnd)) {
      const std::lock_guard lock(mutex_);
      kept_back_ = [this, step, error = manifest.error()] { observer_.failed(step, error); };
      return;
    }
    observer_.failed(step, manifest.error());
    return;
  }
  probe::Committed(static_cast<uint64_t>(step));
  observer_.saved({*manifest, MonoNow() - begin});
  probe::Pass(Point::kCheckpointRotate, static_cast<uint32_t>(step));
  if (Status rotated = RotateCheckpoints(directory_.get(), config_.keep, step); !rotated) {
    observer_.rotation_failed(step, rotated.error());
  }
}

}  // namespace shakedown
