#include "harness/scenario/keys.h"

#include <array>
#include <concepts>
#include <cstdio>
#include <type_traits>

#include "harness/base/quantity.h"
#include "harness/scenario/suite_file.h"
#include "harness/scenario/vocabulary.h"

namespace shakedown {
namespace {

// --- Words of the enumerations

std::vector<std::string> OutcomeNames() {
  return {"unaffected", "degrades", "recovers", "stops_cleanly"};
}
std::vector<std::string> ModeNames() { return {"sync", "async"}; }
std::vector<std::string> PolicyNames() { return {"none", "group"}; }
std::vector<std::string> HoldNames() { return {"auto", "none"}; }
std::vector<std::string> ModelNames() { return {"mlp"}; }
std::vector<std::string> TrainerNames() { return {"reference"}; }
std::vector<std::string> TimeoutNames() { return {"collective", "watchdog", "worker_deadline"}; }
std::vector<std::string> UntilNames() { return {"save_failed"}; }
std::vector<std::string> EqualsNames() { return {"uninterrupted"}; }
std::vector<std::string> WitnessNames() { return {"required", "optional"}; }
std::vector<std::string> VerdictNames() {
  return {"PASS", "FAIL", "INVALID", "INCONCLUSIVE", "ERROR"};
}

template <typename Enum>
Enum Word(const std::vector<std::string>& names, const std::string& text) {
  size_t index = 0;
  while (index < names.size() && names[index] != text) ++index;
  SHAKEDOWN_ASSERT(index < names.size());  // the parser has looked it up
  return static_cast<Enum>(index);
}

// --- From a value to a member, and from a member to its default's text

template <typename T>
void Assign(T& to, const Value& value) {
  if constexpr (std::is_integral_v<T>) {
    to = static_cast<T>(std::get<int64_t>(value));
  } else {
    to = std::get<T>(value);
  }
}
void Assign(std::vector<int>& to, const Value& value) {
  const auto& numbers = std::get<std::vector<int64_t>>(value);
  to.assign(numbers.begin(), numbers.end());
}
void Assign(Outcome& to, const Value& value) {
  to = Word<Outcome>(OutcomeNames(), std::get<std::string>(value));
}
void Assign(CheckpointMode& to, const Value& value) {
  to = Word<CheckpointMode>(ModeNames(), std::get<std::string>(value));
}
void Assign(RestartPolicy& to, const Value& value) {
  to = Word<RestartPolicy>(PolicyNames(), std::get<std::string>(value));
}
void Assign(HoldMode& to, const Value& value) {
  to = Word<HoldMode>(HoldNames(), std::get<std::string>(value));
}
void Assign(Point& to, const Value& value) {
  to = FindPoint(std::get<std::string>(value)).value_or(Point::kNone);
}
template <typename T>
void Assign(std::optional<T>& to, const Value& value) {
  if (std::holds_alternative<Off>(value)) {
    to.reset();
  } else {
    Assign(to.emplace(), value);
  }
}

std::string Show(const std::string& value) { return value; }
std::string Show(std::integral auto value) { return std::to_string(value); }
std::string Show(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}
std::string Show(Nanoseconds value) { return FormatDuration(value); }
std::string Show(Outcome value) { return OutcomeNames()[static_cast<size_t>(value)]; }
std::string Show(CheckpointMode value) { return ModeNames()[static_cast<size_t>(value)]; }
std::string Show(RestartPolicy value) { return PolicyNames()[static_cast<size_t>(value)]; }
std::string Show(HoldMode value) { return HoldNames()[static_cast<size_t>(value)]; }
std::string Show(Point) { return ""; }  // depends on the fault: its sentence says so
std::string Show(const std::vector<std::string>&) { return ""; }
std::string Show(const std::vector<int>& values) {
  std::string text = "[";
  for (const int value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}
template <typename T>
std::string Show(const std::optional<T>& value) {
  return value ? Show(*value) : std::string();
}

template <typename T>
struct MemberOf;
template <typename Object, typename Member>
struct MemberOf<Member Object::*> {
  using Class = Object;
};

template <auto kMember>
void Store(void* object, const Value& value) {
  using Class = typename MemberOf<decltype(kMember)>::Class;
  Assign(static_cast<Class*>(object)->*kMember, value);
}
template <auto kMember>
std::string ShowDefault(const void* object) {
  using Class = typename MemberOf<decltype(kMember)>::Class;
  return Show(static_cast<const Class*>(object)->*kMember);
}

void* Same(void* object) { return object; }
template <auto kMember>
void* Enter(void* object) {
  using Class = typename MemberOf<decltype(kMember)>::Class;
  return &(static_cast<Class*>(object)->*kMember);
}
template <auto kMember>
void* Append(void* object) {
  using Class = typename MemberOf<decltype(kMember)>::Class;
  return &(static_cast<Class*>(object)->*kMember).emplace_back();
}

// --- Builders: one line per key below

template <auto kMember>
constexpr Key Plain(std::string_view name, KeyType type, std::string_view sentence,
                    std::string_view minimum = "", std::string_view maximum = "") {
  Key key{name, type, sentence};
  key.store = &Store<kMember>;
  key.show_default = &ShowDefault<kMember>;
  key.minimum = minimum;
  key.maximum = maximum;
  return key;
}
template <auto kMember>
constexpr Key OneOf(std::string_view name, std::string_view what,
                    std::vector<std::string> (*names)(), std::string_view sentence) {
  Key key = Plain<kMember>(name, KeyType::kName, sentence);
  key.what = what;
  key.names = names;
  return key;
}
template <auto kMember>
constexpr Key SomeOf(std::string_view name, std::string_view what,
                     std::vector<std::string> (*names)(), std::string_view sentence) {
  Key key = OneOf<kMember>(name, what, names, sentence);
  key.type = KeyType::kNames;
  return key;
}
constexpr Key Group(std::string_view name, std::span<const Key> keys, void* (*enter)(void*),
                    std::string_view sentence, KeyType type = KeyType::kMap) {
  Key key{name, type, sentence};
  key.keys = keys;
  key.enter = enter;
  return key;
}
constexpr Key Required(Key key) {
  key.required = true;
  key.show_default = nullptr;
  return key;
}

// --- job

constexpr Key kCheckpointKeys[] = {
    Plain<&CheckpointConfig::every>("every", KeyType::kInteger,
                                    "Steps from one checkpoint to the next; 0: never.", "0",
                                    "1000000"),
    OneOf<&CheckpointConfig::mode>("mode", "checkpoint mode", &ModeNames,
                                   "Whether training waits for the write."),
    Plain<&CheckpointConfig::keep>("keep", KeyType::kInteger, "Complete checkpoints kept.", "1",
                                   "100"),
};
constexpr Key kTimeoutKeys[] = {
    Plain<&JobConfig::collective_timeout>("collective", KeyType::kDuration,
                                          "How long a collective may take.", "10ms", "24h"),
    Plain<&JobConfig::startup_timeout>("startup", KeyType::kDuration,
                                       "From launch until all ranks are ready.", "100ms", "24h"),
    Plain<&JobConfig::term_grace>("term_grace", KeyType::kDuration,
                                  "From SIGTERM to SIGKILL when an attempt is ended.", "10ms",
                                  "1h"),
};
constexpr Key kRestartKeys[] = {
    OneOf<&JobConfig::restart_policy>("policy", "restart policy", &PolicyNames,
                                      "What the launcher does when a rank fails: nothing, or start "
                                      "all ranks again."),
    Plain<&JobConfig::max_restarts>("max", KeyType::kInteger,
                                    "Restarts at most, over all ranks together.", "0", "1000"),
};

constexpr Key WatchdogKey() {
  Key key = Plain<&JobConfig::watchdog>(
      "watchdog", KeyType::kDurationOrOff,
      "The launcher's limit on time without a completed step on any rank.", "10ms", "24h");
  key.show_default = [](const void* object) -> std::string {
    const auto& watchdog = static_cast<const JobConfig*>(object)->watchdog;
    return watchdog ? FormatDuration(*watchdog) : "off";
  };
  return key;
}
constexpr Key BucketKey() {
  Key key = Plain<&JobConfig::bucket_bytes>("bucket_size", KeyType::kBytes,
                                            "Largest size of a gradient bucket.", "1KiB", "1GiB");
  key.show_default = [](const void* object) {
    return FormatBytes(static_cast<const JobConfig*>(object)->bucket_bytes);
  };
  return key;
}
// The parser puts the file's keys here before the job is checked; nothing is left to store.
constexpr Key FileKey() {
  Key key{"file", KeyType::kText,
          "A job file, relative to this file; keys that stand beside it replace the job file's."};
  key.store = [](void*, const Value&) {};
  key.show_default = [](const void*) { return std::string(); };
  return key;
}

constexpr Key kJobKeys[] = {
    FileKey(),
    OneOf<&JobConfig::trainer>("trainer", "trainer", &TrainerNames, "Which job."),
    Plain<&JobConfig::ranks>("ranks", KeyType::kInteger, "Processes that train together.", "1",
                             "64"),
    OneOf<&JobConfig::model>("model", "model", &ModelNames, "What is trained."),
    Plain<&JobConfig::hidden>("hidden", KeyType::kIntegers,
                              "Widths of the layers between input and output.", "1", "65536"),
    Plain<&JobConfig::dropout>("dropout", KeyType::kNumber,
                               "Share of activations dropped in training.", "0", "0.99"),
    Plain<&JobConfig::data>("data", KeyType::kText,
                            "A data set that ships with Shakedown (digits), or a directory with an "
                            "IDX pair, relative to this file."),
    Plain<&JobConfig::steps>("steps", KeyType::kInteger,
                             "Optimizer steps; they count from 1, and the job ends with this one.",
                             "1", "1000000"),
    Plain<&JobConfig::micro_batch>("micro_batch", KeyType::kInteger,
                                   "Samples per rank and micro-batch.", "1", "65536"),
    Plain<&JobConfig::accumulation>("accumulation", KeyType::kInteger,
                                    "Micro-batches per step, whose gradients are summed.", "1",
                                    "1024"),
    Plain<&JobConfig::step_time>("step_time", KeyType::kDuration,
                                 "Timing model: a step takes at least this long. Changes no bit of "
                                 "the result.",
                                 "0s", "1h"),
    Plain<&JobConfig::seed>("seed", KeyType::kInteger,
                            "Weights, sample order and dropout follow from it.", "0"),
    Plain<&JobConfig::learning_rate>("learning_rate", KeyType::kNumber,
                                     "Peak, per 32 samples of the global batch (linear scaling).",
                                     "1e-12", "100"),
    Plain<&JobConfig::warmup_steps>("warmup_steps", KeyType::kInteger,
                                    "Steps over which the learning rate rises to its peak.", "0",
                                    "1000000"),
    Plain<&JobConfig::weight_decay>("weight_decay", KeyType::kNumber, "AdamW's.", "0", "1"),
    BucketKey(),
    Plain<&JobConfig::workers>("workers", KeyType::kInteger, "Data workers per rank.", "1", "16"),
    Plain<&JobConfig::prefetch>("prefetch", KeyType::kInteger,
                                "Micro-batches that a data worker may be ahead.", "1", "64"),
    Plain<&JobConfig::worker_deadline>("worker_deadline", KeyType::kDuration,
                                       "A data worker that takes longer for a batch is replaced.",
                                       "10ms", "1h"),
    Plain<&JobConfig::slow_data_warning>("slow_data_warning", KeyType::kDuration,
                                         "A batch that takes longer is warned of.", "1ms", "1h"),
    Group("checkpoint", kCheckpointKeys, &Enter<&JobConfig::checkpoint>, "Saving."),
    Group("timeouts", kTimeoutKeys, &Same, "The job's own limits."),
    WatchdogKey(),
    Group("restart", kRestartKeys, &Same, "What the launcher does about a failure."),
};

// --- faults

constexpr Key WorkerKey() {
  Key key{
      "worker", KeyType::kInteger, "A data worker of that rank instead of the rank itself, from 0.",
      nullptr,  nullptr,           "0"};
  key.store = [](void* object, const Value& value) {
    static_cast<FaultSpec*>(object)->target.worker = static_cast<int>(std::get<int64_t>(value));
  };
  key.show_default = [](const void*) { return std::string(); };
  return key;
}
constexpr Key RankKey() {
  Key key{"rank", KeyType::kRanks,
          "On which ranks: a number, a list, any (drawn from the seed), last or all."};
  key.store = [](void* object, const Value& value) {
    Target& target = static_cast<FaultSpec*>(object)->target;
    const std::optional<int> worker = target.worker;  // `worker` may have been stored before
    target = std::get<Target>(value);
    target.worker = worker;
  };
  key.required = true;
  return key;
}

constexpr Key kAtKeys[] = {
    RankKey(),
    WorkerKey(),
    Required(Plain<&FaultSpec::step>("step", KeyType::kInteger,
                                     "At which step, from 1. The checkpoint's step at points of a "
                                     "checkpoint, the batch's number "
                                     "in a data worker.",
                                     "0", "4294967295")),
    OneOf<&FaultSpec::point>("point", "point", &PointNames,
                             "At which point of the job's life; unless said, the fault's usual "
                             "one."),
    Plain<&FaultSpec::occurrence>("occurrence", KeyType::kInteger,
                                  "At which passing of the point within the step, from 1.", "1",
                                  "4294967295"),
    Plain<&FaultSpec::attempt>("attempt", KeyType::kInteger, "In which attempt, from 0.", "0",
                               "1000"),
    Plain<&FaultSpec::committed>("committed", KeyType::kInteger,
                                 "Not before the checkpoint of this step is published.", "1"),
};
constexpr Key ParamsKey() {
  Key key{"with", KeyType::kParams,
          "The fault's parameters: `shakedown explain FAULT` lists them."};
  key.show_default = [](const void*) { return std::string(); };
  return key;
}
constexpr Key kFaultKeys[] = {
    Required(OneOf<&FaultSpec::inject>("inject", "fault", &FaultNames, "Which fault.")),
    ParamsKey(),
    Required(Group("at", kAtKeys, &Same, "Where and when.")),
    Plain<&FaultSpec::duration>("for", KeyType::kDuration,
                                "Undone after this time; unless said, when its target ends.", "1ms",
                                "24h"),
    OneOf<&FaultSpec::until>("until", "event", &UntilNames,
                             "Undone when the job is seen to do this; `for` is then the latest "
                             "moment."),
    OneOf<&FaultSpec::hold>(
        "hold", "hold mode", &HoldNames,
        "Whether the target waits at the point until the fault is in (auto), or "
        "does it to itself (none)."),
};

// --- expect

constexpr Key CulpritNumber(std::string_view name, std::string_view sentence,
                            void (*store)(void*, const Value&)) {
  Key key{name, KeyType::kInteger, sentence, store, nullptr, "0"};
  key.show_default = [](const void*) { return std::string(); };
  return key;
}
template <char... kKind>
void StoreCulpritName(void* object, const Value& value) {
  auto* culprit = static_cast<Culprit*>(object);
  culprit->kind = std::string{kKind...};
  culprit->name = std::get<std::string>(value);
}
constexpr Key CulpritName(std::string_view name, std::string_view sentence,
                          void (*store)(void*, const Value&)) {
  Key key{name, KeyType::kName, sentence, store};
  key.show_default = [](const void*) { return std::string(); };
  return key;
}
constexpr Key kCulpritKeys[] = {
    CulpritNumber("rank", "A rank.",
                  [](void* object, const Value& value) {
                    auto* culprit = static_cast<Culprit*>(object);
                    culprit->rank = static_cast<int>(std::get<int64_t>(value));
                    if (culprit->kind.empty()) culprit->kind = "rank";
                  }),
    CulpritNumber("worker", "A data worker of that rank.",
                  [](void* object, const Value& value) {
                    auto* culprit = static_cast<Culprit*>(object);
                    culprit->worker = static_cast<int>(std::get<int64_t>(value));
                    culprit->kind = "data";
                  }),
    CulpritName("node", "A node, by name.", &StoreCulpritName<'n', 'o', 'd', 'e'>),
    CulpritName("link", "A link.", &StoreCulpritName<'l', 'i', 'n', 'k'>),
    CulpritName("storage", "A place where data is kept: checkpoint.",
                &StoreCulpritName<'s', 't', 'o', 'r', 'a', 'g', 'e'>),
    CulpritName("service", "A service.", &StoreCulpritName<'s', 'e', 'r', 'v', 'i', 'c', 'e'>),
};

constexpr Key kDiagnosisKeys[] = {
    Group("culprit", kCulpritKeys, &Append<&DiagnosisExpectation::culprits>,
          "Where it began, when it began in one place."),
    Group("culprits", kCulpritKeys, &Append<&DiagnosisExpectation::culprits>,
          "Where it began, when it began in several places.", KeyType::kMaps),
    OneOf<&DiagnosisExpectation::mechanism>("mechanism", "mechanism", &MechanismNames,
                                            "What happened there."),
};
constexpr Key kDetectedKeys[] = {
    Required(Plain<&Expectation::detected_within>(
        "within", KeyType::kDuration, "The job itself notices within this time.", "1ms", "24h")),
};
constexpr Key kTimeoutExpectKeys[] = {
    Required(OneOf<&Expectation::timeout_fires>("fires", "timeout", &TimeoutNames,
                                                "This limit of the job fires, and no other.")),
};
constexpr Key EqualsKey() {
  Key key{"equals", KeyType::kName,
          "Every step after the resume is, bit for bit, that of the undisturbed run."};
  key.store = [](void*, const Value&) {};  // there is no other kind of resume to ask for
  key.show_default = [](const void*) { return EqualsNames().front(); };
  key.what = "reference";
  key.names = &EqualsNames;
  return key;
}
constexpr Key kResumeKeys[] = {
    Required(Plain<&Expectation::resume_from>(
        "from", KeyType::kInteger, "The step of the checkpoint that training resumes from.", "0")),
    EqualsKey(),
};
constexpr Key kBudgetKeys[] = {
    Plain<&Expectation::recovery_budget>("recovery", KeyType::kDuration,
                                         "From the injection to the first new step on all ranks.",
                                         "1ms", "24h"),
    Plain<&Expectation::lost_steps_budget>(
        "lost_steps", KeyType::kInteger, "From the step that was reached to the step resumed from.",
        "0"),
};
constexpr Key kToleranceKeys[] = {
    Required(Plain<&Expectation::weights_tolerance>(
        "weights", KeyType::kNumber,
        "Largest absolute difference of a final weight from the undisturbed run's.", "0", "1")),
};
constexpr Key WitnessKey() {
  Key key{"exit_witness", KeyType::kName,
          "Whether exit_truthful needs an exit status that does not come from the launcher."};
  key.store = [](void* object, const Value& value) {
    static_cast<Expectation*>(object)->exit_witness_optional =
        std::get<std::string>(value) == "optional";
  };
  key.show_default = [](const void* object) -> std::string {
    return static_cast<const Expectation*>(object)->exit_witness_optional ? "optional" : "required";
  };
  key.what = "word";
  key.names = &WitnessNames;
  return key;
}

constexpr Key kExpectKeys[] = {
    Required(OneOf<&Expectation::outcome>(
        "outcome", "outcome", &OutcomeNames,
        "unaffected: no restart, equal. degrades: no restart, within the tolerance. recovers: "
        "restarted, then equal. stops_cleanly: ends, non-zero, in time, logged.")),
    Group("diagnosis", kDiagnosisKeys, &Enter<&Expectation::diagnosis>,
          "What a right diagnosis says."),
    Group("detected", kDetectedKeys, &Same, "The job notices."),
    Group("timeout", kTimeoutExpectKeys, &Same, "A limit of the job fires."),
    Group("resume", kResumeKeys, &Same, "Where training goes on."),
    Group("budget", kBudgetKeys, &Same, "What the recovery may cost."),
    Group("tolerance", kToleranceKeys, &Same, "How far `degrades` may stray."),
    Plain<&Expectation::restarts>("restarts", KeyType::kInteger,
                                  "Exactly so many; unless said, by the outcome.", "0", "1000"),
    WitnessKey(),
    OneOf<&Expectation::verdict>("verdict", "verdict", &VerdictNames,
                                 "For negative scenarios: the verdict that is right."),
    OneOf<&Expectation::check>("check", "check", &CheckNames,
                               "For negative scenarios: the check that has to say so."),
    Plain<&Expectation::reason>("reason", KeyType::kText,
                                "For negative scenarios: text that its reason contains."),
    SomeOf<&Expectation::also_fails>("also_fails", "check", &CheckNames,
                                     "For negative scenarios: other checks that fail with it."),
};

constexpr Key kWaiverKeys[] = {
    Required(OneOf<&Waiver::check>("check", "check", &CheckNames,
                                   "The check whose failure is put up with.")),
    Required(Plain<&Waiver::reason>("reason", KeyType::kText, "Why; every report shows it.")),
    Required(Plain<&Waiver::until>("until", KeyType::kDate, "The last day on which it counts.")),
};

constexpr Key kScenarioKeys[] = {
    Required(Plain<&Scenario::name>("name", KeyType::kName, "As in the name of the file.")),
    Required(Plain<&Scenario::summary>("summary", KeyType::kText,
                                       "One sentence: what is broken, and what has to happen.")),
    SomeOf<&Scenario::classes>("classes", "failure class", &ClassNames,
                               "Failure classes that it stands for; `shakedown list classes`."),
    Group("job", kJobKeys, &Enter<&Scenario::job>, "The job that is broken."),
    Group("faults", kFaultKeys, &Append<&Scenario::faults>,
          "What is done to it; nothing in a control.", KeyType::kMaps),
    Required(Group("expect", kExpectKeys, &Enter<&Scenario::expect>, "What a sound job does.")),
    Group("waive", kWaiverKeys, &Append<&Scenario::waive>, "Failures that are known and accepted.",
          KeyType::kMaps),
};

constexpr Key kSuiteKeys[] = {
    SomeOf<&SuiteFile::require>("require", "scenario", nullptr,
                                "Names of scenarios of the folder that must have run, not been "
                                "skipped, for the suite to pass."),
};

}  // namespace

std::span<const Key> ScenarioKeys() { return kScenarioKeys; }
std::span<const Key> JobKeys() { return kJobKeys; }
std::span<const Key> SuiteKeys() { return kSuiteKeys; }

}  // namespace shakedown
