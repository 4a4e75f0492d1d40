// Exit statuses tell the truth.
#include "analysis/checks/common.h"
#include "harness/wire/log_events.h"

namespace shakedown::checks {
extern const CheckInfo exit_truthful;
namespace {

namespace e = log_events;

constexpr std::string_view kName = "exit_truthful";
constexpr Need kNeeds[] = {Need::kPlan,  Need::kJob,      Need::kInjected,   Need::kObserved,
                           Need::kExits, Need::kRankLogs, Need::kLauncherLog};
constexpr CheckParameter kParameters[] = {
    {"expect.exit_witness",
     "optional: without the kernel's word on the ranks' exits the check does "
     "not apply",
     "it is INCONCLUSIVE then"}};

using Bad = std::optional<Finding>;

std::string Status(std::optional<int64_t> code, const std::string& signal) {
  if (!signal.empty()) return signal;
  return code ? "exit status " + std::to_string(*code) : "no status";
}

// The launcher's record against the kernel's.
Bad Differs(const ProcessExit& kernel, const LogLine& launcher) {
  const auto code = IntField(launcher.fields, "code");
  const std::string signal = StringField(launcher.fields, "signal").value_or("");
  const std::optional<int64_t> kernel_code =
      kernel.code ? std::optional<int64_t>(*kernel.code) : std::nullopt;
  const bool same =
      kernel.signal.empty() ? signal.empty() && code == kernel_code : signal == kernel.signal;
  if (!same) {
    return Broke(kName,
                 "the launcher says that " + RankName(kernel.rank) + " ended by " +
                     Status(code, signal) + ", the kernel says " +
                     Status(kernel_code, kernel.signal),
                 {launcher.where, kernel.where});
  }
  if (IntField(launcher.fields, "pid") != kernel.pid) {
    return Broke(kName, "the launcher gives " + RankName(kernel.rank) + " another pid",
                 {launcher.where, kernel.where});
  }
  return std::nullopt;
}

bool SignalledByUs(const CheckInput& in, const ProcessExit& exit) {
  for (const InjectedRecord& injected : in.secret.injected) {
    if (injected.place.attempt == exit.attempt && injected.place.rank == exit.rank &&
        !injected.place.worker &&
        StringField(injected.facts, "signal").value_or("") == exit.signal) {
      return true;
    }
  }
  return false;
}

// Ended by the launcher, or otherwise: who sent the signal is known for those that we sent, and
// what neither we nor the launcher sent, the rank brought upon itself.
Bad WrongSender(const CheckInput& in, const ProcessExit& exit, const LogLine& launcher) {
  const std::string by = StringField(launcher.fields, "by").value_or("");
  if (by != "itself" && by != "launcher") {
    return Broke(kName, "the launcher does not say who ended " + RankName(exit.rank),
                 {launcher.where});
  }
  if (by == "launcher" && SignalledByUs(in, exit)) {
    return Broke(kName,
                 "the launcher claims that it ended " + RankName(exit.rank) +
                     ", which was killed by somebody else",
                 {launcher.where, exit.where});
  }
  if (by == "itself" && exit.signal == "SIGKILL" && !SignalledByUs(in, exit)) {
    return Broke(kName,
                 RankName(exit.rank) +
                     " was killed and the launcher, who alone could have, "
                     "does not say so",
                 {launcher.where, exit.where});
  }
  return std::nullopt;
}

// What the rank wrote last about itself against the status that it left with.
Bad ContradictsLog(const ProcessEvidence& process, const ProcessExit& exit) {
  for (const LogLine& line : process.log) {
    if (line.event == e::kRankFailed) {
      const auto said = IntField(line.fields, "exit_code");
      if (exit.signal.empty() && said != exit.code) {
        return Broke(kName,
                     RankName(exit.rank) + " logged exit status " +
                         (said ? std::to_string(*said) : std::string("none")) + " and left with " +
                         Status(exit.code, exit.signal),
                     {line.where, exit.where});
      }
    }
    const bool fatal = line.event == e::kRankFailed || line.event == e::kPeerLost ||
                       line.event == e::kCollectiveTimeout;
    if (fatal && line.level == "ERROR" && exit.signal.empty() && exit.code == 0) {
      return Broke(kName, RankName(exit.rank) + " logged " + line.event + " and left with status 0",
                   {line.where, exit.where});
    }
  }
  if (process.ledger && process.ledger->end && exit.signal.empty() &&
      process.ledger->end->exit_code != exit.code) {
    return Broke(kName,
                 RankName(exit.rank) + " recorded exit status " +
                     std::to_string(process.ledger->end->exit_code) + " and left with " +
                     Status(exit.code, exit.signal),
                 {process.ledger->where, exit.where});
  }
  return std::nullopt;
}

// The job's status against those of the last attempt's ranks and against the launcher's last word.
Bad JobContradicts(const CheckInput& in, bool* judged) {
  const Event* exited = in.observed.First(events::kJobExited);
  if (exited == nullptr || in.observed.attempts.empty()) return std::nullopt;
  *judged = true;
  const auto code = IntField(exited->fields, "code");
  const Where where = ObservedEvidence::At(*exited);
  const AttemptEvidence& last = in.observed.attempts.back();
  for (int r = 0; r < in.job().ranks; ++r) {
    const ProcessExit* exit = FindExit(in.observed, last.attempt, r);
    if (exit != nullptr && exit->failed() && code == 0) {
      return Broke(kName,
                   "the job ended with status 0 although " + RankName(r) +
                       " of its last attempt ended by " + Status(exit->code, exit->signal),
                   {where, exit->where});
    }
  }
  for (const LogLine& line : last.launcher) {
    if (line.event != e::kJobFinished) continue;
    if (IntField(line.fields, "exit_code") != code) {
      return Broke(kName, "the launcher logged another exit status than it left with",
                   {line.where, where});
    }
  }
  return std::nullopt;
}

Finding Check(const CheckInput& in) {
  int64_t compared = 0;
  int64_t witnessed = 0;
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    for (int r = 0; r < in.job().ranks; ++r) {
      const ProcessExit* exit = FindExit(in.observed, attempt.attempt, r);
      const LogLine* launcher = FindLauncherExit(attempt, r);
      if (exit == nullptr) continue;  // it may never have started
      const bool known = exit->code || !exit->signal.empty();
      if (launcher == nullptr) {
        return Broke(kName,
                     "the launcher never said how " + RankName(r) + " of attempt " +
                         std::to_string(attempt.attempt) + " ended",
                     {exit->where});
      }
      ++compared;
      if (!exit->independent() || !known) continue;
      ++witnessed;
      if (auto bad = Differs(*exit, *launcher)) return *bad;
      if (auto bad = WrongSender(in, *exit, *launcher)) return *bad;
      const ProcessEvidence* process = attempt.rank(r);
      if (process == nullptr) continue;
      if (auto bad = ContradictsLog(*process, *exit)) return *bad;
    }
  }
  bool job_judged = false;
  if (auto bad = JobContradicts(in, &job_judged)) return *bad;
  if (witnessed < compared || compared == 0) {
    const std::string why = "the kernel's word is missing for " +
                            std::to_string(compared - witnessed) + " of " +
                            std::to_string(compared) + " exits of ranks";
    return in.expect().exit_witness_optional && compared > 0 ? NotApplicable(why) : Unclear(why);
  }
  if (!job_judged) return Unclear("the end of the job was not seen");
  Finding finding = Pass("launcher, logs and kernel agree about every exit", witnessed + 1,
                         static_cast<int64_t>(in.observed.attempts.size()) * in.job().ranks + 1);
  finding.unit = "exits";
  return finding;
}

}  // namespace

const CheckInfo exit_truthful = {
    .name = kName,
    .promise =
        "Exit statuses tell the truth: the launcher's, the ranks' and the job's; signals are "
        "decoded and what the launcher ended is told apart.",
    .check_class = CheckClass::kReaction,
    .evidence = kNeeds,
    .parameters = kParameters,
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
