// What went wrong, and where it began, from what an operator could have seen.
//
// A diagnosis is blind: it is a pure function of ObservedEvidence, which holds nothing that knows
// the plan. `unknown` is an answer; a wrong name is the worst one. README.md says how the
// detectors' answers become one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/evidence/observed.h"
#include "harness/base/status.h"
#include "harness/wire/json.h"
#include "harness/wire/run_dir.h"
#include "harness/wire/scenario.h"

namespace shakedown {

enum class ChainRole {
  kRoot,      // where it began
  kCascade,   // an error that only follows from it
  kTeardown,  // somebody ends what is left
};

// One thing that happened, in order of time.
struct ChainLink {
  double t_ms = 0;  // since the run's first record
  ChainRole role = ChainRole::kCascade;
  int attempt = 0;
  std::optional<int> rank;
  std::string what;
  Where where;
  bool operator==(const ChainLink&) const = default;
};

// A rank that only suffered, and the last that was heard of it.
struct Suffered {
  int attempt = 0;
  int rank = 0;
  std::string what;
  Where where;
  bool operator==(const Suffered&) const = default;
};

// A second thing that went wrong in the same run, beside the one named above all.
struct AlsoFound {
  std::vector<Culprit> culprits;
  std::string mechanism;
  std::string what;
  Where where;
  bool operator==(const AlsoFound&) const = default;
};

struct Diagnosis {
  // Empty when mechanism is none or unknown, and where nobody is to blame (preempted).
  std::vector<Culprit> culprits;
  std::string mechanism = "unknown";  // mechanisms.def
  std::vector<ChainLink> chain;       // in order of time
  std::vector<Suffered> cascade;      // one per rank and attempt
  std::vector<AlsoFound> also;
  double confidence = 0;             // 0 to 1; README.md says what the numbers mean
  std::vector<std::string> reasons;  // sentences; each cites a file and a line
  std::vector<std::string> missing;  // what would settle it
  std::string runbook;               // file name in analysis/runbooks; empty: none
  // How the reader was kept from the secret files: "landlock" or "in process: <why>". Empty when
  // Diagnose was called on evidence already in memory.
  std::string isolation;

  bool named() const { return mechanism != "unknown" && mechanism != "none"; }
  bool operator==(const Diagnosis&) const = default;
};

std::string_view ToString(ChainRole role);

// The object that `shakedown diagnose --json` prints, without schema_version.
Json ToJson(const Diagnosis& diagnosis);
// Fields that are absent keep their defaults; a field of a wrong type is an Error.
Result<Diagnosis> DiagnosisFromJson(const Json& json);

// Pure: no clock, no file, no randomness.
Diagnosis Diagnose(const ObservedEvidence& evidence);

// Loads the evidence of a run directory and diagnoses it in a child process that can open the
// observed files and nothing else (Landlock). Where the kernel has no Landlock, or the child cannot
// be made, it reads in this process and `isolation` says so. Ends within `limit_ms`. An Error when
// `run` is no run directory (the first record of observed.jsonl is not run.started).
// REQUIRES: SIGCHLD is not ignored. Safe with other threads running in the caller.
Result<Diagnosis> DiagnoseIsolated(const RunDir& run, int limit_ms = 20'000);

// "rank 1", "worker 0 of rank 2", "storage checkpoint"; joined by ", ". "nobody" for none.
std::string DescribeCulprits(const std::vector<Culprit>& culprits);

}  // namespace shakedown
