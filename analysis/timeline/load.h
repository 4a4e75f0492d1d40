// How loaded the machine was while the run went on: measured beside the job, from load.sampled.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/evidence/observed.h"

namespace shakedown {

struct LoadReport {
  int64_t samples = 0;
  bool overloaded = false;
  std::string why;  // when overloaded: which measure, how much, the limit
};

LoadReport MeasureLoad(const ObservedEvidence& observed);

}  // namespace shakedown
