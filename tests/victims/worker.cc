// A data worker: makes batches for ever, whether or not anybody wants them.
//   worker IGNORED IGNORED IGNORED
#include "injectors/probe/probe.h"
#include "tests/victims/victim.h"

int main() {
  using shakedown::Point;
  namespace probe = shakedown::probe;
  shakedown::victims::DieWithParent();
  probe::Pass(Point::kWorkerStart, 1);
  for (uint32_t batch = 1;; ++batch) {
    probe::Pass(Point::kWorkerRead, batch);
    shakedown::victims::Compute();
    probe::Pass(Point::kWorkerDecode, batch);
    probe::Pass(Point::kWorkerDeliver, batch);
  }
}
