#include "harness/run/checkpoint_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace shakedown {
namespace {

Json ToRecord(const CheckpointInspection& c, bool published) {
  Json out = {{"step", c.step}, {"name", c.manifest_name}};
  out["published"] = published;
  out["complete"] = c.complete;
  out["verified"] = c.verified;
  out["why"] = c.why;
  out["file_xxh3"] = ToHex(c.file);
  out["weights"] = ToHex(c.weights);
  out["optimizer"] = ToHex(c.optimizer);
  Json rng = Json::array();
  for (const Digest128& digest : c.rng) rng.push_back(ToHex(digest));
  out["rng"] = std::move(rng);
  return out;
}

}  // namespace

Result<std::unique_ptr<CheckpointWatch>> CheckpointWatch::Start(
    int directory_fd, EventLoop& loop, Recorder& recorder, std::function<void(int64_t)> published) {
  std::unique_ptr<CheckpointWatch> watch(
      new CheckpointWatch(directory_fd, loop, recorder, std::move(published)));
  watch->inotify_.Reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch->inotify_) return FailErrno("start", "inotify");
  // The magic link leads to the directory itself, in whatever mount namespace it lies.
  const std::string path = "/proc/self/fd/" + std::to_string(directory_fd);
  if (::inotify_add_watch(watch->inotify_.get(), path.c_str(),
                          IN_MOVED_TO | IN_CREATE | IN_DELETE) < 0) {
    return FailErrno("watch", "the checkpoint directory");
  }
  loop.WatchReadable(watch->inotify_.get(), [w = watch.get()] { w->OnInotify(); });
  return watch;
}

CheckpointWatch::~CheckpointWatch() { loop_.Unwatch(inotify_.get()); }

void CheckpointWatch::OnInotify() {
  alignas(inotify_event) char buffer[16384];
  while (true) {
    const ssize_t n = ::read(inotify_.get(), buffer, sizeof buffer);
    if (n <= 0) return;
    for (ssize_t at = 0; at < n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if (event->len == 0) continue;
      const std::string name = event->name;
      const auto step = CheckpointStepOf(name);
      if (!step || name != CheckpointManifestName(*step)) continue;
      if ((event->mask & IN_MOVED_TO) != 0) {
        published_.insert(*step);
        recorder_.Observe(events::kFilePublished,
                          {{"what", "checkpoint"}, {"step", *step}, {"name", name}});
        Inspect("publish");
        on_published_(*step);
      } else if ((event->mask & IN_DELETE) != 0) {
        Inspect("rotate");
      }
    }
  }
}

void CheckpointWatch::Inspect(const char* reason, std::optional<int> rank) {
  Json record = {{"t_ns", MonoNow().ns}, {"attempt", attempt_}, {"reason", reason}};
  if (rank) record["rank"] = *rank;
  const Result<CheckpointListing> listing = ListCheckpoints(directory_);
  if (!listing) {
    record["error"] = listing.error().message;
    recorder_.Inspection(record);
    return;
  }
  Json files = Json::array();
  std::map<int64_t, std::string> versions;
  std::set<int64_t> listed;  // with a manifest
  for (const auto& file : listing->files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
    if (const auto step = CheckpointStepOf(file.name)) {
      versions[*step] += std::to_string(file.inode) + "/" + std::to_string(file.bytes) + "/" +
                         std::to_string(file.mtime_ns) + ";";
      if (file.name == CheckpointManifestName(*step)) listed.insert(*step);
    }
  }
  record["files"] = std::move(files);
  Json checkpoints = Json::array();
  last_.clear();
  for (const auto& [step, version] : versions) {
    const std::string key = std::to_string(step) + ":" + version;
    auto known = known_.find(key);
    if (known == known_.end()) {
      known = known_.emplace(key, InspectCheckpoint(directory_, step)).first;
    }
    last_[step] = known->second.verified;
    checkpoints.push_back(ToRecord(known->second, listed.contains(step) && IsPublished(step)));
  }
  record["checkpoints"] = std::move(checkpoints);
  recorder_.Inspection(record);
}

// Asked after its files were read, of one whose manifest lay there before: a checkpoint that was
// withdrawn meanwhile (rotation takes the manifest first) is nobody's promise any more.
bool CheckpointWatch::IsPublished(int64_t step) const {
  return ::faccessat(directory_, CheckpointManifestName(step).c_str(), F_OK, 0) == 0;
}

std::optional<int64_t> CheckpointWatch::NewestVerified() const {
  for (auto it = last_.rbegin(); it != last_.rend(); ++it) {
    if (it->second) return it->first;
  }
  return std::nullopt;
}

}  // namespace shakedown
