// Scenario (what a person wrote, completed with defaults) and plan (nothing left to chance).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/job.h"
#include "harness/wire/points.h"

namespace shakedown {

// Which ranks: a number or a list, or a word.
struct Target {
  enum class Kind { kList, kAny, kLast, kAll };
  Kind kind = Kind::kList;
  std::vector<int> ranks;     // kList
  std::optional<int> worker;  // a data worker of that rank instead of the rank itself
  bool operator==(const Target&) const = default;
};

// A parameter of a fault: duration (ns), size (bytes) or count as integer, or text.
using ParamValue = std::variant<int64_t, double, std::string>;
using Params = std::map<std::string, ParamValue>;

enum class HoldMode { kAuto, kNone };

struct FaultSpec {
  std::string inject;  // "rank.kill"
  Params with;         // completed with the fault's defaults
  Target target;
  int attempt = 0;
  int64_t step = 0;
  Point point = Point::kNone;
  int64_t occurrence = 1;
  std::optional<int64_t> committed;     // wait inside the hold until this checkpoint is published
  std::optional<Nanoseconds> duration;  // `for`: then it is undone; nullopt: until its target ends
  // `until`: undone when the job is seen to do this; `duration` is then the latest moment.
  std::optional<std::string> until;  // "save_failed"
  HoldMode hold = HoldMode::kAuto;
};

enum class Outcome { kUnaffected, kDegrades, kRecovers, kStopsCleanly };

struct Culprit {
  std::string kind;  // rank | node | link | storage | service | data
  std::optional<int> rank;
  std::optional<int> worker;  // kind data
  std::string name;           // other kinds, e.g. "checkpoint"
  bool operator==(const Culprit&) const = default;
};

struct DiagnosisExpectation {
  std::vector<Culprit> culprits;
  std::string mechanism = "none";
  bool operator==(const DiagnosisExpectation&) const = default;
};

struct Expectation {
  Outcome outcome = Outcome::kUnaffected;
  DiagnosisExpectation diagnosis;
  std::optional<Nanoseconds> detected_within;  // by the job itself
  // Which of the job's own limits must fire: "collective", "watchdog", "worker_deadline".
  std::optional<std::string> timeout_fires;
  std::optional<int64_t> resume_from;          // checkpoint step
  std::optional<Nanoseconds> recovery_budget;  // injection to the first new step on all ranks
  std::optional<int64_t> lost_steps_budget;
  std::optional<double> weights_tolerance;  // outcome degrades
  std::optional<int64_t> restarts;          // exactly so many; default by outcome
  // "NOT_APPLICABLE where the scenario says so": exit_truthful without an independent status.
  bool exit_witness_optional = false;
  // Negative scenarios.
  std::string verdict = "PASS";
  std::optional<std::string> check;   // that must fail (or be invalid)
  std::optional<std::string> reason;  // text that its reason must contain
  std::vector<std::string> also_fails;
};

struct Waiver {
  std::string check;
  std::string reason;
  std::string until;  // YYYY-MM-DD
};

struct Scenario {
  std::string name;
  std::string summary;
  std::string path;  // the file it came from; empty in saved plans
  std::vector<std::string> classes;
  JobConfig job;
  std::vector<FaultSpec> faults;
  Expectation expect;
  std::vector<Waiver> waive;
};

// One occurrence of a fault on one process, every draw made.
struct Injection {
  int id = 0;  // from 1; also the arm's id in the progress page
  std::string fault;
  Params with;
  int rank = 0;
  std::optional<int> worker;
  int attempt = 0;
  int64_t step = 0;
  Point point = Point::kNone;
  int64_t occurrence = 1;
  std::optional<int64_t> committed;
  std::optional<Nanoseconds> duration;
  std::optional<std::string> until;
  HoldMode hold = HoldMode::kAuto;
  std::string level;   // "real", "real effect", "simulated"
  std::string means;   // how, on this machine: "pidfd_send_signal", "private tmpfs", "probe"
  std::string better;  // what would make better means available; empty: these are the best
};

struct Plan {
  Scenario scenario;
  uint64_t seed = 1;
  std::vector<Injection> injections;
  // A hold lasts at most this long: 100 ms, or a tenth of the shortest timeout in play.
  Nanoseconds hold_limit{std::chrono::milliseconds(100)};
  std::optional<int64_t> private_fs_bytes;  // checkpoint directory on a private filesystem
  std::string digest;  // of everything above except paths: 32 hexadecimal digits
};

std::string_view ToString(Outcome outcome);

Json ToJson(const Scenario& scenario);
Json ToJson(const Plan& plan);
Json ToJson(const Culprit& culprit);
Json ToJson(const Params& params);
Result<Plan> PlanFromJson(const Json& json);
Result<Scenario> ScenarioFromJson(const Json& json);

// Digest of a plan: over its JSON without `digest`, scenario path and data_dir.
std::string PlanDigest(const Plan& plan);

}  // namespace shakedown
