// Whether an attempt stood still, and since when somebody knew: several detectors have to look at
// the ranks as they were just before, since survivors move on (and fail) the moment they give up.
#pragma once

#include <optional>
#include <string>

#include "analysis/diagnosis/detector.h"

namespace shakedown::diagnosis {

struct Stall {
  MonoTime noticed;  // by the harness or by the job itself, whichever was first
  Reason noticed_by;
};

// nullopt when nobody noticed a stand-still, or when a rank had ended before: its end explains it.
std::optional<Stall> FindStall(const ObservedEvidence& evidence, const AttemptEvidence& attempt);

// The attempt ended without finishing: a rank failed, or the launcher says so.
bool AttemptFailed(const ObservedEvidence& evidence, const AttemptEvidence& attempt);

// When the first rank of the attempt ended with a failure.
std::optional<MonoTime> FirstFailedExit(const ObservedEvidence& evidence, int attempt);

// Attempt that ran at time `t`: the last that had started by then, else the first.
int AttemptAt(const ObservedEvidence& evidence, MonoTime t);

}  // namespace shakedown::diagnosis
