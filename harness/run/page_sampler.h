// Turns the progress pages into page.sampled records, and notices when no rank moves any more.
#pragma once

#include <functional>
#include <map>

#include "harness/base/time.h"
#include "harness/run/process_table.h"
#include "harness/run/recorder.h"

namespace shakedown {

class PageSampler {
 public:
  PageSampler(ProcessTable& processes, Recorder& recorder)
      : processes_(processes), recorder_(recorder) {}

  // Records the page of each living process that has changed since its last record.
  void SampleAll();
  // The last record of a process. Idempotent.
  void Final(TrackedProcess& process);

  // The furthest last_step of any living rank of the youngest attempt, and when it last moved.
  struct Advance {
    int attempt = -1;
    uint64_t step = 0;
    MonoTime moved;
  };
  const Advance& advance() const { return advance_; }

 private:
  struct Seen {
    std::string text;  // the record's fields without `final`
    bool final = false;
  };
  void Record(TrackedProcess& process, bool final);

  ProcessTable& processes_;
  Recorder& recorder_;
  std::map<const TrackedProcess*, Seen> seen_;
  Advance advance_;
};

}  // namespace shakedown
