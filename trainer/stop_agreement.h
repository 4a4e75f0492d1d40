// How the ranks of one machine agree on the step after which all of them stop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "harness/base/status.h"

namespace shakedown {

// A rank that was asked to stop at the end of step s marks s + 1 in a file that all ranks see, once
// for all: making a symbolic link is atomic, and fails where there is one. It does so before it
// contributes to the averages of step s + 1, so whoever completes step s + 1 finds the mark; and
// nobody is past step s + 1 then. A missing mark costs 1 us a step; a collective of its own would
// cost 100.
class StopAgreement {
 public:
  // `store_file`: of this attempt; the mark lies beside it.
  explicit StopAgreement(const std::filesystem::path& store_file);

  // True when all ranks stop after step `step`, on all of them alike. To be asked at the end of
  // each step, after its averages and before anything is contributed to the next one's.
  // `requested`: this rank was asked to stop.
  Result<bool> StopsAfter(int64_t step, bool requested) const;

  // REQUIRES: all ranks have had their answer for the last step.
  void Remove() const;

 private:
  const std::string mark_;
};

}  // namespace shakedown
