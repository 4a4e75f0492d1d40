// Numbers of untrusted records, kept where arithmetic with them cannot overflow. A record that says
// more than this is wrong anyway, and stays wrong.
#pragma once

#include <algorithm>
#include <cstdint>

#include "harness/base/time.h"
#include "harness/wire/job.h"

namespace shakedown {

// 126 years after boot.
inline constexpr int64_t kMaxTimeNs = int64_t{4'000'000'000} * 1'000'000'000;
inline constexpr int64_t kMaxStep = 1'000'000'000'000;
// Loops run over these.
inline constexpr int kMaxRanks = 4096;
inline constexpr int kMaxJobSteps = 100'000'000;

inline MonoTime SaneTime(int64_t ns) { return MonoTime{std::clamp<int64_t>(ns, 0, kMaxTimeNs)}; }
inline int64_t SaneStep(int64_t step) { return std::clamp<int64_t>(step, -1, kMaxStep); }

inline bool IsSane(const JobConfig& job) {
  return job.ranks >= 1 && job.ranks <= kMaxRanks && job.steps >= 1 && job.steps <= kMaxJobSteps &&
         job.micro_batch >= 1 && job.micro_batch <= kMaxJobSteps && job.accumulation >= 1 &&
         job.accumulation <= kMaxRanks && job.checkpoint.every >= 0 &&
         job.checkpoint.every <= kMaxJobSteps && job.prefetch >= 0 && job.prefetch <= kMaxRanks &&
         job.workers >= 0 && job.workers <= kMaxRanks && job.max_restarts >= 0 &&
         job.max_restarts <= kMaxRanks && job.collective_timeout.count() >= 0 &&
         job.collective_timeout.count() <= kMaxTimeNs;
}

}  // namespace shakedown
