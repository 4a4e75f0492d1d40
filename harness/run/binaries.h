// Where the programs of this build lie: beside the running one; trainer and launcher where
// SHAKEDOWN_TRAINER and SHAKEDOWN_LAUNCHER say, when they are set.
#pragma once

#include <filesystem>
#include <string>

#include "harness/base/status.h"

namespace shakedown {

struct Binaries {
  std::filesystem::path reaper, launcher, trainer, data_worker;
};

// Every program must exist and be executable: else an Error that names it and says what to build.
Result<Binaries> FindBinaries();

}  // namespace shakedown
