// Reading progress pages over time: what witnesses about a process that does not move are made of.
// Pages are untrusted; nothing here does more than compare words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/time.h"
#include "harness/wire/json.h"
#include "harness/wire/progress_page.h"
#include "injectors/reach.h"

namespace shakedown {

// Whether the process has ended, by the kernel's word.
bool Ended(const Reach& reach, const ProcessRef& process);
// ESRCH when the target has ended before anything was done to it.
Status TargetIsAlive(const Reach& reach);

std::string Describe(const ProcessRef& process);  // "rank 1", "worker 0 of rank 1"
Json DescribeWord(uint64_t word);                 // {"point", "step", "count"}

uint64_t MainWord(const PageObserved& page);

// The lane that stands at one point and step: which one it is, and since when it has not moved.
class LaneWatch {
 public:
  LaneWatch(Point point, int64_t step) : point_(point), step_(step) {}

  // Looks at the page. Call it again and again, first when the process is known to stand there.
  void Look(const PageObserved& page, MonoTime now);

  bool found() const { return since_.has_value(); }
  // Whether it has passed another point since it was found. Stays true.
  bool moved() const { return moved_at_.has_value(); }
  // From the first look that found it to the last one before it moved.
  Nanoseconds stood() const { return stood_; }
  // From the first look that found it to the one that found it moved. REQUIRES: moved().
  Nanoseconds moved_after() const { return *moved_at_ - *since_; }
  std::optional<MonoTime> since() const { return since_; }
  // {"point", "step", "count", "stood_ms"} as seen last.
  Json Observed() const;

 private:
  Point point_;
  int64_t step_;
  size_t lane_ = 0;
  uint64_t word_ = 0;       // where it was found
  uint64_t last_word_ = 0;  // where it was seen last
  std::optional<MonoTime> since_;
  std::optional<MonoTime> moved_at_;
  Nanoseconds stood_{0};
};

// For how long a set of words has not changed.
class StillWatch {
 public:
  Nanoseconds Look(std::vector<uint64_t> words, MonoTime now);

 private:
  std::vector<uint64_t> words_;
  std::optional<MonoTime> since_;
};

}  // namespace shakedown
