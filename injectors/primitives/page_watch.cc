#include "injectors/primitives/page_watch.h"

#include <cerrno>
#include <utility>

namespace shakedown {

bool Ended(const Reach& reach, const ProcessRef& process) {
  if (reach.Exit(process)) return true;
  const char state = reach.State(process);
  return state == '-' || state == 'Z' || state == 'X';
}

Status TargetIsAlive(const Reach& reach) {
  const ProcessRef target = reach.target();
  if (!Ended(reach, target)) return {};
  return FailErrno("inject into",
                   Describe(target) + " (process " + std::to_string(target.identity.pid) + ")",
                   ESRCH);
}

std::string Describe(const ProcessRef& process) {
  const std::string rank = "rank " + std::to_string(process.rank);
  return process.worker ? "worker " + std::to_string(*process.worker) + " of " + rank : rank;
}

Json DescribeWord(uint64_t word) {
  const Progress progress = Unpack(word);
  return {{"point", PointName(progress.point)}, {"step", progress.step}, {"count", progress.count}};
}

uint64_t MainWord(const PageObserved& page) {
  return page.lanes[static_cast<size_t>(Lane::kMain)].load(std::memory_order_relaxed);
}

void LaneWatch::Look(const PageObserved& page, MonoTime now) {
  if (!since_) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t word = page.lanes[lane].load(std::memory_order_relaxed);
      const Progress at = Unpack(word);
      if (at.point != point_ || at.step != (static_cast<uint64_t>(step_) & 0xFFFFFF)) continue;
      lane_ = lane;
      word_ = last_word_ = word;
      since_ = now;
      return;
    }
    return;
  }
  last_word_ = page.lanes[lane_].load(std::memory_order_relaxed);
  if (moved_at_) return;
  if (last_word_ == word_) {
    stood_ = now - *since_;
  } else {
    moved_at_ = now;
  }
}

Json LaneWatch::Observed() const {
  if (!since_) return nullptr;
  Json observed = DescribeWord(last_word_);
  observed["stood_ms"] = ToMs(stood_);
  return observed;
}

Nanoseconds StillWatch::Look(std::vector<uint64_t> words, MonoTime now) {
  if (!since_ || words != words_) {
    words_ = std::move(words);
    since_ = now;
  }
  return now - *since_;
}

}  // namespace shakedown
