// Filling a filesystem up with a file of ours, and measuring that it is full.
#pragma once

#include <cstdint>
#include <string>

#include "harness/base/status.h"

namespace shakedown {

// A name that nobody else has: ".shakedown-ballast-<injection>-<16 hex digits>".
Result<std::string> NewBallastName(int injection);

struct FilesystemSpace {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;  // to users without privileges
  bool tmpfs = false;
};
Result<FilesystemSpace> SpaceOf(int directory);

// Creates `name` in `directory` and lets it grow until nothing more can be had. The file must not
// exist, and stays. Returns its size. An Error may leave a part of it.
// REQUIRES: the filesystem is private to the run.
Result<int64_t> FillFilesystem(int directory, const std::string& name);

// errno of writing one byte into a new, nameless file of the filesystem; 0 when that succeeded. The
// file is gone when it returns.
int TryToWrite(int directory);

}  // namespace shakedown
