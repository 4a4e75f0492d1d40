// What the victims share: pacing, and not outliving the test that started them.
#pragma once

#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <ctime>

#include "harness/wire/environment.h"

namespace shakedown::victims {

inline void DieWithParent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

inline int RankFromEnvironment() {
  const char* rank = std::getenv(env::kRank);
  return rank == nullptr ? 0 : std::atoi(rank);
}

// What the work of a step stands for.
inline void Compute() {
  const timespec a_millisecond{0, 1'000'000};
  ::nanosleep(&a_millisecond, nullptr);
}

}  // namespace shakedown::victims
