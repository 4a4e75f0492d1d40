// What a fault declares. One constant per fault, in injectors/<family>/<name>.cc, listed in
// catalog.def; `list`, `explain`, the schema, YAML validation and the contract tests read it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "harness/wire/points.h"
#include "harness/wire/scenario.h"

namespace shakedown {

class Injector;

// How close to the real thing a means is. Reports repeat it and count levels apart.
enum class Level {
  kReal,        // the real cause
  kRealEffect,  // the job sees exactly what the real cause gives it
  kSimulated,
};
constexpr std::string_view ToString(Level level) {
  switch (level) {
    case Level::kReal:
      return "real";
    case Level::kRealEffect:
      return "real effect";
    case Level::kSimulated:
      return "simulated";
  }
  return "simulated";
}

enum class ParamType { kDuration, kBytes, kCount, kChoice };

struct ParamSpec {
  std::string_view name;
  ParamType type;
  std::string_view default_text;  // as in YAML; empty: required unless `optional`
  bool optional = false;
  std::string_view minimum;                   // as in YAML; empty: none (durations, sizes: 0)
  std::string_view maximum;                   // as in YAML; empty: none
  std::span<const std::string_view> choices;  // kChoice
  std::string_view sentence;
};

enum class TargetKind { kRank, kDataWorker };

// How it ends without us.
enum class Ends {
  kWithProcess,  // with the process that it acted on
  kByRecipe,     // only by its undo recipe
};

// What this machine and this user can do; measured once per process.
struct Machine {
  bool mount_namespace = false;  // as root, or through a user namespace
  bool user_namespace = false;
  bool root = false;
  std::string why_no_mount_namespace;
};
Machine DetectMachine();

struct Availability {
  bool available = false;
  Level level = Level::kSimulated;
  std::string means;    // "private tmpfs", "pidfd_send_signal"
  std::string why_not;  // when not available
  std::string better;   // what would make a better means available; empty: it is the best
};

struct Fault {
  std::string_view family;
  std::string_view name;
  std::string_view summary;  // one sentence
  std::span<const ParamSpec> params;
  TargetKind target;
  std::span<const Point> points;  // where it may be injected; the first is usual
  Level level;                    // of its best means
  std::string_view level_why;
  std::string_view needs;                     // "nothing", or what the best means needs
  std::span<const std::string_view> classes;  // taxonomy: "C02"
  std::string_view radius;                    // what it can touch at most
  Ends ends;
  // It acts from outside while its target is held at the point: `hold: none` is refused. Every
  // fault that leaves the target's page unarmed (Injector::Arm) by one of its means.
  bool needs_hold = false;
  std::span<const std::string_view> excludes;  // other faults that it cannot be combined with
  std::string_view mechanism;                  // what a right diagnosis says: mechanisms.def
  std::string_view operator_sees;              // a sentence
  std::string_view runbook;                    // file name in analysis/runbooks
  Availability (*available)(const Machine& machine);
  std::unique_ptr<Injector> (*make)(const Injection& injection, const Availability& means);
  // What is wrong with these parameters taken together, for a person; empty: nothing. nullptr: each
  // parameter stands for itself.
  std::string (*conflict)(const Params& params) = nullptr;

  std::string full_name() const { return std::string(family) + "." + std::string(name); }
};

}  // namespace shakedown
