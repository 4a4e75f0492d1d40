// Watches the job's checkpoint directory through a descriptor (it may lie in another mount
// namespace) and keeps the inventory: what was there at each publish, rotation, death, attempt
// start and end, with the verdict of the second reader.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "harness/base/unique_fd.h"
#include "harness/run/event_loop.h"
#include "harness/run/recorder.h"
#include "harness/wire/checkpoint_format.h"

namespace shakedown {

class CheckpointWatch {
 public:
  // `directory_fd` must outlive the watch. `published(step)` is called after the inventory.
  static Result<std::unique_ptr<CheckpointWatch>> Start(int directory_fd, EventLoop& loop,
                                                        Recorder& recorder,
                                                        std::function<void(int64_t)> published);
  ~CheckpointWatch();

  void SetAttempt(int attempt) { attempt_ = attempt; }
  // `reason`: publish, rotate, death, attempt_start, attempt_end.
  void Inspect(const char* reason, std::optional<int> rank = std::nullopt);
  bool Published(int64_t step) const { return published_.contains(step); }
  // Takes notice of what happened up to now.
  void Drain() { OnInotify(); }
  // The newest checkpoint that verified at the last inspection.
  std::optional<int64_t> NewestVerified() const;

 private:
  bool IsPublished(int64_t step) const;
  CheckpointWatch(int directory_fd, EventLoop& loop, Recorder& recorder,
                  std::function<void(int64_t)> published)
      : directory_(directory_fd),
        loop_(loop),
        recorder_(recorder),
        on_published_(std::move(published)) {}
  void OnInotify();

  int directory_;
  EventLoop& loop_;
  Recorder& recorder_;
  std::function<void(int64_t)> on_published_;
  UniqueFd inotify_;
  int attempt_ = 0;
  std::set<int64_t> published_;
  // By (inode, size, mtime) of file and manifest: what is unchanged is not read again.
  std::map<std::string, CheckpointInspection> known_;
  std::map<int64_t, bool> last_;  // step -> verified, at the last inspection
};

}  // namespace shakedown
