// The seal: what lay in the run directory when an attempt, and then the run, had ended
// (seal.json). "Absent at the seal counts against the job; absent or changed after the seal is
// INCONCLUSIVE."
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/wire/run_dir.h"

namespace shakedown {

enum class SealState {
  kIntact,        // there, with the sealed bytes
  kAbsentAtSeal,  // the seal of that part does not list it, and it is not there
  kChanged,       // other bytes than sealed, or it appeared after the seal
  kGone,          // sealed, and no longer there
  kUnsealed,      // no seal covers that part of the run directory
};

struct SealReport {
  bool present = false;                    // seal.json was there and could be read
  std::string problem;                     // why not
  std::map<std::string, SealState> files;  // by name relative to the run directory
  // Why a file that is kChanged could not even be read: "cannot read 'x': not a regular file: a
  // FIFO".
  std::map<std::string, std::string> unread;
  std::set<int> sealed_attempts;
  bool run_sealed = false;

  SealState StateOf(const std::string& file) const;
  // "observed.jsonl is not what was sealed: cannot read ...".
  std::string Describe(const std::string& file) const;
  // Files that are kChanged or kGone, sorted.
  std::vector<std::string> Tampered() const;
};

// Reads and digests every sealed file. Never fails: a seal that cannot be read is a report with
// `present` false.
SealReport VerifySeal(const RunDir& run);

// "is not what was sealed", ...
std::string_view Describe(SealState state);

}  // namespace shakedown
