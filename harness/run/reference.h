// The undisturbed run that others are compared with: the same job without faults, made twice, kept
// only when both agree bit for bit, and cached under a key of everything that decides its bits.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "harness/run/controller.h"
#include "harness/wire/job.h"

namespace shakedown {

struct Reference {
  std::filesystem::path directory;  // rank-R/{ledger.bin, weights-end.bin}, key.json; empty: none
  std::string key;
  bool cached = false;
  bool equal = true;  // false: two undisturbed runs of this job differ, so nothing can be compared
  double made_ms = 0;
  Json ToJson() const;
};

struct ReferenceOutcome {
  Reference reference;
  RunOutcome run;  // of the run that did not complete; kCompleted otherwise
};

// $SHAKEDOWN_CACHE, else $XDG_CACHE_HOME/shakedown, else $HOME/.cache/shakedown.
Result<std::filesystem::path> CacheDirectory();

// `request` is the run that is about to be made; its plan's faults are left out. An Error: the
// reference could not be made (what the job said is in the message).
Result<ReferenceOutcome> EnsureReference(const RunRequest& request);

// Digest over numerics, data, programs, the libraries that the trainer loads, and what of the job's
// configuration decides its bits.
Result<Json> ReferenceKey(const JobConfig& job, const Binaries& binaries);

}  // namespace shakedown
