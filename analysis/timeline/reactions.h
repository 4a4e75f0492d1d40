// Who noticed what, and when: the job (its own lines, its own exits) and Shakedown (its notices).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/evidence/observed.h"
#include "analysis/evidence/secret.h"
#include "harness/wire/scenario.h"

namespace shakedown {

// A line that a sound job writes about a fault.
struct Sign {
  std::string_view event;
  std::string_view level;
};

// What a sound job's logs say when this fault acts, most telling first. Empty for a fault that is
// not known here: then any WARNING or ERROR line counts as its sign.
std::span<const Sign> SignsOf(std::string_view mechanism);

struct Reaction {
  MonoTime at;       // on the controller's clock
  std::string what;  // "rank 0 logged peer.lost"
  Where where;
};

// "rank 2" or "the launcher".
std::string WriterOf(const LogLine& line);

// The first reaction of the job itself to this injection: a sign in its own logs, seen to arrive
// after t0; or the exit, after t0, of a process that nothing was done to. The victim's own death is
// the fault and no reaction.
std::optional<Reaction> JobReaction(const ObservedEvidence& observed, const SecretEvidence& secret,
                                    const InjectedRecord& injected);

// The first notice of Shakedown itself after t0: progress.stopped, or the exit of any process.
std::optional<Reaction> OwnNotice(const ObservedEvidence& observed, MonoTime zero);

// The line by which one of the job's own limits says that it was reached: "collective",
// "watchdog" or "worker_deadline".
struct LimitInfo {
  std::string_view name;
  std::string_view event;
  std::string_view level;
  std::string_view limit_field;  // in ms
};
const LimitInfo* FindLimit(std::string_view name);
// The first such line at or after `zero`.
const LogLine* FirstLimitLine(const ObservedEvidence& observed, const LimitInfo& limit,
                              MonoTime zero);

}  // namespace shakedown
