#include "trainer/launch/exit_report.h"

#include <algorithm>
#include <csignal>
#include <functional>

#include "harness/wire/exit_code.h"

namespace shakedown {
namespace {

using Blame = ExitReport::Blame;

std::string_view MeaningOf(int code) {
  switch (code) {
    case kRankUsage:
      return "bad configuration";
    case kRankPeerLost:
      return "peer lost";
    case kRankCollectiveTimeout:
      return "collective timed out";
    case kRankOutOfMemory:
      return "out of memory";
    case kRankData:
      return "data could not be read";
    case kRankCheckpoint:
      return "checkpoint could not be loaded or saved";
    case kRankNotFinite:
      return "loss not finite";
    case kRankTerminated:
      return "stopped on SIGTERM";
    case kRankControlLost:
      return "controller lost";
    case kRankException:
      return "exception";
    default:
      return "";
  }
}

std::string Describe(const RankEnd& end) {
  if (end.by_launcher) return "ended by the launcher";
  if (end.status.signaled()) return "killed by " + end.status.ToString();
  const std::string_view meaning = MeaningOf(end.status.code());
  return end.status.ToString() + (meaning.empty() ? "" : " (" + std::string(meaning) + ")");
}

bool FailedByItself(const RankEnd& end) { return !end.by_launcher && !end.status.ok(); }
bool DiedOfSignal(const RankEnd& end) { return FailedByItself(end) && end.status.signaled(); }
bool OwnFailure(const RankEnd& end) {
  return FailedByItself(end) && !end.status.signaled() && !IsConsequence(end.status);
}
bool GaveUp(const RankEnd& end) { return FailedByItself(end) && IsConsequence(end.status); }

using Ends = std::vector<RankEnd>;
using Chosen = std::vector<const RankEnd*>;

Chosen Select(const Ends& ends, const std::function<bool(const RankEnd&)>& wanted) {
  Chosen chosen;
  for (const RankEnd& end : ends) {
    if (wanted(end)) chosen.push_back(&end);
  }
  return chosen;
}

// Nobody dies of SIGKILL because a peer did, but an abort may well be a consequence (Gloo's threads
// call std::terminate when a peer is lost). So: all that were killed, or the first that crashed.
Chosen CauseAmongSignals(const Chosen& signals) {
  Chosen killed;
  for (const RankEnd* end : signals) {
    if (end->status.signal() == SIGKILL) killed.push_back(end);
  }
  return killed.empty() ? Chosen{signals.front()} : killed;
}

// The first failure of its own, and those that failed alike (a loss that is not finite is seen by
// all ranks at once).
Chosen CauseAmongOwnFailures(const Chosen& failures) {
  Chosen cause;
  for (const RankEnd* end : failures) {
    if (end->status == failures.front()->status) cause.push_back(end);
  }
  return cause;
}

// All failures are consequences: of a rank that had to be ended since it lived on, or of one that
// had left as if all were done.
Chosen CauseBehindTimeouts(const Ends& ends) {
  const Chosen gave_up = Select(ends, GaveUp);
  Chosen alive = Select(ends, [](const RankEnd& end) { return end.by_launcher; });
  // When most of them live on, "alive" says nothing.
  if (!alive.empty()) return alive.size() <= gave_up.size() ? alive : Chosen{};
  return Select(ends, [&](const RankEnd& end) {
    return end.status.ok() && end.ended < gave_up.front()->ended;
  });
}

struct Judged {
  std::string reason;
  Chosen cause;
  std::string what;  // instead of the end's own description
};

Judged JudgeEnds(const Ends& ends) {
  if (const Chosen signals = Select(ends, DiedOfSignal); !signals.empty()) {
    return {"signal", CauseAmongSignals(signals), ""};
  }
  if (const Chosen failures = Select(ends, OwnFailure); !failures.empty()) {
    return {"exit", CauseAmongOwnFailures(failures), ""};
  }
  Chosen cause = CauseBehindTimeouts(ends);
  const bool alive = !cause.empty() && cause.front()->by_launcher;
  return {
      "timeout", std::move(cause),
      alive ? "alive, did not join; ended by the launcher" : "left before the others were done"};
}

Judged JudgeSuspects(const AttemptFacts& facts) {
  const Chosen running = Select(facts.ends, [](const RankEnd& end) { return end.by_launcher; });
  Chosen suspects = Select(facts.ends, [&](const RankEnd& end) {
    return std::find(facts.suspects.begin(), facts.suspects.end(), end.rank) !=
           facts.suspects.end();
  });
  // When all stand at the same place, the group hangs and nothing says because of whom.
  if (suspects.size() >= running.size() && running.size() > 1) suspects.clear();
  return facts.trigger == AttemptTrigger::kWatchdog
             ? Judged{"watchdog", std::move(suspects),
                      "alive, behind the others; ended by the launcher"}
             : Judged{"startup", std::move(suspects),
                      "did not become ready; ended by the launcher"};
}

// Of ends seen in the same instant the cause comes first.
std::optional<int> FirstFailure(const Ends& ends, const Chosen& cause) {
  const Chosen failed = Select(ends, FailedByItself);
  if (failed.empty()) return std::nullopt;
  for (const RankEnd* end : failed) {
    const bool is_cause = std::find(cause.begin(), cause.end(), end) != cause.end();
    if (is_cause && end->ended == failed.front()->ended) return end->rank;
  }
  return failed.front()->rank;
}

Json ToJson(const std::vector<Blame>& blames) {
  Json out = Json::array();
  for (const Blame& blame : blames) out.push_back({{"rank", blame.rank}, {"what", blame.what}});
  return out;
}

std::string ToSentence(const std::vector<Blame>& blames) {
  std::string out;
  for (const Blame& blame : blames) {
    out += (out.empty() ? "rank " : ", rank ") + std::to_string(blame.rank) + ": " + blame.what;
  }
  return out;
}

}  // namespace

bool IsConsequence(const WaitStatus& status) {
  return status.code() == kRankPeerLost || status.code() == kRankCollectiveTimeout;
}

ExitReport MakeExitReport(const AttemptFacts& facts) {
  const Judged judged =
      facts.trigger == AttemptTrigger::kRankEnded ? JudgeEnds(facts.ends) : JudgeSuspects(facts);
  ExitReport report;
  report.first = FirstFailure(facts.ends, judged.cause);
  report.reason = judged.reason;
  report.last_step = facts.ends.empty() ? 0 : facts.ends.front().last_step;
  for (const RankEnd& end : facts.ends) {
    report.last_step = std::min(report.last_step, end.last_step);
    if (std::find(judged.cause.begin(), judged.cause.end(), &end) != judged.cause.end()) {
      report.cause.push_back({end.rank, judged.what.empty() ? Describe(end) : judged.what});
    } else if (!end.status.ok() || end.by_launcher) {
      report.consequences.push_back({end.rank, Describe(end)});
    }
  }
  const auto by_rank = [](const Blame& a, const Blame& b) { return a.rank < b.rank; };
  std::sort(report.cause.begin(), report.cause.end(), by_rank);
  std::sort(report.consequences.begin(), report.consequences.end(), by_rank);
  return report;
}

Json ToJson(const ExitReport& report) {
  return {{"first", report.first ? Json(*report.first) : Json(nullptr)},
          {"reason", report.reason},
          {"cause", ToJson(report.cause)},
          {"consequences", ToJson(report.consequences)},
          {"last_step", report.last_step}};
}

std::string ToSentence(const ExitReport& report) {
  std::string out = "reason: " + report.reason + ", after step " + std::to_string(report.last_step);
  out += report.cause.empty() ? ". No rank stands out as the cause"
                              : ". Cause: " + ToSentence(report.cause);
  if (!report.consequences.empty()) out += ". Consequences: " + ToSentence(report.consequences);
  return out + ".";
}

}  // namespace shakedown
