// How busy the machine is: what decides whether a missed time budget speaks of the job or of the
// machine.
#pragma once

#include "harness/base/time.h"
#include "harness/run/recorder.h"

namespace shakedown {

class LoadSampler {
 public:
  explicit LoadSampler(Recorder& recorder) : recorder_(recorder) {}
  // How much later than planned one of the controller's own timers came.
  void NoteSlip(Nanoseconds late) { slip_ = std::max(slip_, late); }
  // Writes load.sampled.
  void Sample();

 private:
  Recorder& recorder_;
  Nanoseconds slip_{0};
};

}  // namespace shakedown
