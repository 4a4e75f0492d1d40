// The job's logs say what failed, where, at the right level, with the last step; and say nothing
// alarming when nothing fails.
#include <cerrno>

#include "analysis/checks/common.h"
#include "analysis/timeline/reactions.h"
#include "harness/wire/log_events.h"

namespace shakedown::checks {
extern const CheckInfo failure_logged;
namespace {

namespace e = log_events;

constexpr std::string_view kName = "failure_logged";
constexpr Need kNeeds[] = {Need::kPlan,     Need::kJob,      Need::kInjected,
                           Need::kObserved, Need::kRankLogs, Need::kLauncherLog};

// What is collected for one injection: lines that were found, and the first that is missing.
class Story {
 public:
  Story(const CheckInput& in, const InjectedRecord& injected)
      : in_(in), injected_(injected), attempt_(in.observed.attempt(injected.place.attempt)) {}

  const SecretPlace& place() const { return injected_.place; }
  const AttemptEvidence* attempt() const { return attempt_; }
  const CheckInput& in() const { return in_; }

  // A line of `writer` (nullopt: the launcher) after t0 that satisfies `wanted`. Otherwise the
  // story is incomplete: `what` says what should have been there.
  const LogLine* Expect(std::optional<int> writer, std::string_view event, std::string_view level,
                        const std::string& what, const LineFilter& wanted = nullptr) {
    const LogLine* line = Find(writer, event, level, wanted);
    if (line == nullptr) {
      Miss((writer ? RankName(*writer) : std::string("the launcher")) + " did not log " +
           std::string(event) + " at level " + std::string(level) + what);
    } else {
      Keep(*line);
    }
    return line;
  }

  const LogLine* Find(std::optional<int> writer, std::string_view event, std::string_view level,
                      const LineFilter& wanted = nullptr) const {
    if (attempt_ == nullptr) return nullptr;
    return FindLine(*attempt_, writer, event, level, [&](const LogLine& line) {
      return (!injected_.t0 || line.when() >= *injected_.t0) && (!wanted || wanted(line));
    });
  }

  void Keep(const LogLine& line) { found_.push_back(line.where); }
  void Miss(std::string what) {
    if (missing_.empty()) missing_ = std::move(what);
  }
  const std::string& missing() const { return missing_; }
  const std::vector<Where>& found() const { return found_; }

 private:
  const CheckInput& in_;
  const InjectedRecord& injected_;
  const AttemptEvidence* attempt_;
  std::string missing_;
  std::vector<Where> found_;
};

bool Says(const LogLine& line, std::string_view field) {
  return !StringField(line.fields, field).value_or("").empty();
}

// Whether a line about a collective speaks of the step in which the fault acted. A rank that has
// given its contribution is missed only in the next step.
bool AtStep(const SecretPlace& place, const LogLine& line) {
  if (!line.step) return false;
  const auto point = FindPoint(place.point);
  const bool contributed = !point || *point >= Point::kCollectiveEnqueued;
  return *line.step == place.step || (contributed && *line.step >= place.step);
}

// attempt.failed blames exactly this rank, and gives the last step that all had completed.
void ExpectExitReport(Story& story, bool must_blame) {
  const int victim = story.place().rank;
  const LogLine* report =
      story.Expect(std::nullopt, e::kAttemptFailed, "ERROR",
                   must_blame ? " with rank " + std::to_string(victim) + " as the only cause" : "",
                   [&](const LogLine& line) {
                     bool blamed = false;
                     for (const Json& cause : Field(line.fields, "cause")) {
                       const auto rank = IntField(cause, "rank");
                       if (rank != victim) return false;  // a wrong name is worse than none
                       blamed = true;
                     }
                     return blamed || !must_blame;
                   });
  if (report == nullptr) return;
  const AttemptTimeline* attempt = story.in().timeline.attempt(story.place().attempt);
  const auto last_step = IntField(report->fields, "last_step");
  if (attempt == nullptr) return;
  if (!last_step || *last_step < attempt->CompletedByAll() ||
      *last_step > attempt->CompletedByAny()) {
    story.Miss("attempt.failed gives last step " +
               (last_step ? std::to_string(*last_step) : std::string("none")) + ", the ledgers " +
               std::to_string(attempt->CompletedByAll()));
  }
}

void Killed(Story& story) {
  const int victim = story.place().rank;
  story.Expect(std::nullopt, e::kRankExited, "ERROR",
               " for rank " + std::to_string(victim) + " with its signal",
               [&](const LogLine& line) { return line.rank == victim && Says(line, "signal"); });
  ExpectExitReport(story, true);
  if (story.attempt() == nullptr) return;
  int reported = 0;
  for (int r = 0; r < story.in().job().ranks; ++r) {
    if (r == victim) continue;
    const LogLine* exit = FindLauncherExit(*story.attempt(), r);
    // A rank that the launcher ended before it could speak need not have spoken.
    if (exit != nullptr && StringField(exit->fields, "by") == "launcher") continue;
    if (story.Expect(r, e::kPeerLost, "ERROR",
                     " with phase and step " + std::to_string(story.place().step),
                     [&](const LogLine& line) {
                       return Says(line, "phase") && AtStep(story.place(), line);
                     }) != nullptr) {
      ++reported;
    }
  }
  if (reported == 0 && story.in().job().ranks > 1) {
    story.Miss("no surviving rank logged peer.lost at level ERROR");
  }
}

void Hung(Story& story) {
  const auto& fires = story.in().expect().timeout_fires;
  const LogLine* fired = nullptr;
  if (!fires || *fires == "collective") {
    for (int r = 0; r < story.in().job().ranks && fired == nullptr; ++r) {
      if (r == story.place().rank) continue;
      fired = story.Find(r, e::kCollectiveTimeout, "ERROR", [&](const LogLine& line) {
        return Says(line, "phase") && AtStep(story.place(), line);
      });
    }
  }
  if (fired == nullptr && (!fires || *fires == "watchdog")) {
    fired = story.Find(std::nullopt, e::kWatchdogFired, "ERROR", [](const LogLine& line) {
      return IntField(line.fields, "last_step").has_value();
    });
  }
  if (fired == nullptr) {
    const bool watchdog = fires && *fires == "watchdog";
    story.Miss(watchdog
                   ? "the launcher did not log watchdog.fired at level ERROR with the last step"
                   : "no peer logged collective.timeout at level ERROR with phase and step " +
                         std::to_string(story.place().step));
  } else {
    story.Keep(*fired);
  }
  // All ranks of a hung group stand still: that the report names nobody is sound.
  ExpectExitReport(story, false);
}

void SaveFailed(Story& story) {
  story.Expect(story.place().rank, e::kCheckpointFailed, "ERROR",
               " for checkpoint " + std::to_string(story.place().step) + " with errno ENOSPC",
               [&](const LogLine& line) {
                 return IntField(line.fields, "checkpoint") == story.place().step &&
                        IntField(line.fields, "errno") == ENOSPC && Says(line, "operation");
               });
}

void WorkerSlow(Story& story) {
  const auto names_worker = [&](const LogLine& line) {
    return IntField(line.fields, "worker") == story.place().worker &&
           line.rank == story.place().rank;
  };
  const std::string who = " naming worker " + std::to_string(story.place().worker.value_or(0)) +
                          " of rank " + std::to_string(story.place().rank);
  story.Expect(story.place().rank, e::kDataSlow, "WARNING", who, names_worker);
  if (story.in().expect().timeout_fires == "worker_deadline") {
    story.Expect(story.place().rank, e::kWorkerReplaced, "WARNING", who, names_worker);
  }
}

void OutOfMemory(Story& story) {
  story.Expect(story.place().rank, e::kMemoryExhausted, "ERROR",
               " with sizes and step " + std::to_string(story.place().step),
               [&](const LogLine& line) {
                 return line.step == story.place().step &&
                        IntField(line.fields, "requested_bytes").value_or(0) > 0 &&
                        IntField(line.fields, "in_use_bytes").value_or(-1) >= 0;
               });
}

void Anything(Story& story) {
  for (const LogLine* line : story.in().observed.AllLines()) {
    if (line->level == "ERROR" && line->when() >= *story.in().timeline.zero) {
      return story.Keep(*line);
    }
  }
  story.Miss("no log holds an ERROR after the injection");
}

struct Rule {
  std::string_view mechanism;
  void (*tell)(Story&);
};
constexpr Rule kRules[] = {
    {"killed", Killed},        {"not_joined", Hung},         {"out_of_memory_device", OutOfMemory},
    {"slow_data", WorkerSlow}, {"storage_full", SaveFailed},
};

std::optional<Finding> Alarm(const CheckInput& in) {
  for (const LogLine* line : in.observed.AllLines()) {
    const bool before = in.timeline.zero && line->when() < *in.timeline.zero;
    if (in.no_fault() ? line->alarming() : before && line->level == "ERROR") {
      return Broke(
          kName,
          WriterOf(*line) + " logged " + line->event + " at level " + line->level +
              (in.no_fault() ? " although nothing was injected" : " before anything was injected"),
          {line->where});
    }
  }
  for (const Event* event : in.observed.Named(events::kNoProgress)) {
    if (in.no_fault()) {
      return Broke(kName, "the job made no progress although nothing was injected",
                   {ObservedEvidence::At(*event)});
    }
  }
  return std::nullopt;
}

// What a log says about whose it is. Somebody who looks for the failed rank goes by that.
std::optional<Finding> WrongRank(const CheckInput& in) {
  for (const LogLine* line : in.observed.AllLines()) {
    if (!line->writer || line->rank == line->writer) continue;
    return Broke(kName,
                 WriterOf(*line) + " logged " + line->event + " as " +
                     (line->rank ? RankName(*line->rank) : std::string("no rank")),
                 {line->where});
  }
  return std::nullopt;
}

int64_t CountLines(const CheckInput& in) { return std::ssize(in.observed.AllLines()); }

Finding Check(const CheckInput& in) {
  if (auto alarm = Alarm(in)) return *alarm;
  if (auto wrong = WrongRank(in)) return *wrong;
  if (in.no_fault()) {
    // Each rank and the launcher say at least that they started and ended.
    return Pass("no log holds a WARNING or an ERROR", CountLines(in), 2 * (in.job().ranks + 1));
  }
  std::vector<Where> where;
  int64_t compared = 0;
  for (const Injection& injection : in.plan().injections) {
    const InjectedRecord* injected = in.secret.Injected(injection.id);
    if (injected == nullptr || !injected->t0) return Unclear(injection.fault + " has no time");
    Story story(in, *injected);
    void (*tell)(Story&) = Anything;
    for (const Rule& rule : kRules) {
      if (rule.mechanism == injected->mechanism) tell = rule.tell;
    }
    tell(story);
    if (!story.missing().empty()) return Broke(kName, story.missing(), story.found());
    compared += std::ssize(story.found());
    where.insert(where.end(), story.found().begin(), story.found().end());
  }
  Finding finding = Pass("the logs say what failed and where", compared,
                         static_cast<int64_t>(in.plan().injections.size()));
  finding.where = std::move(where);
  finding.unit = "lines";
  return finding;
}

}  // namespace

const CheckInfo failure_logged = {
    .name = kName,
    .promise =
        "The job's logs say what failed, where, at the right level and with the last step; "
        "each line names the rank that wrote it; and they raise no alarm when nothing fails.",
    .check_class = CheckClass::kReaction,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = true,
    .function = Check};

}  // namespace shakedown::checks
