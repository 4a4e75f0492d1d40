// Why an attempt failed: which rank was the cause, and which ends are its consequences.
//
// When one rank of a group fails, all others fail soon after, and the loudest error is rarely the
// first. What tells them apart, strongest first: a signal that we did not send; an exit status that
// says "my own fault"; being alive when all others had given up waiting. A rank that says "a peer
// is gone" or "the collective timed out" is a consequence of something. Where nothing stands out,
// no rank is named: a wrong name costs more than none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/time.h"
#include "harness/process/wait_status.h"
#include "harness/wire/json.h"

namespace shakedown {

struct RankEnd {
  int rank = 0;
  WaitStatus status = WaitStatus::Exited(0);
  bool by_launcher = false;  // ended by a signal that the launcher had sent
  MonoTime ended;
  int64_t last_step = 0;
};

// Exit statuses 65 and 66 of the reference trainer: somebody else's failure.
bool IsConsequence(const WaitStatus& status);

// What ended the attempt.
enum class AttemptTrigger { kRankEnded, kWatchdog, kStartup };

struct AttemptFacts {
  AttemptTrigger trigger = AttemptTrigger::kRankEnded;
  std::vector<RankEnd> ends;  // every rank once, in the order of their ends
  // kWatchdog: running ranks with the smallest step. kStartup: ranks that were not ready.
  std::vector<int> suspects;
};

struct ExitReport {
  struct Blame {
    int rank;
    std::string what;
  };
  std::optional<int> first;  // the first that failed by itself; nullopt: none did
  std::string reason;        // signal, exit, watchdog, startup, timeout
  std::vector<Blame> cause;  // may be empty
  std::vector<Blame> consequences;
  int64_t last_step = 0;  // the last step that every rank completed
};

// REQUIRES: with kRankEnded at least one rank failed by itself.
ExitReport MakeExitReport(const AttemptFacts& facts);

// Fields of attempt.failed, and the same as a sentence or two.
Json ToJson(const ExitReport& report);
std::string ToSentence(const ExitReport& report);

}  // namespace shakedown
