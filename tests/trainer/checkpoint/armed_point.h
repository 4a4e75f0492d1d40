// Arms a point of this process, without a controller: the operation that follows it fails.
#pragma once

#include "injectors/probe/probe.h"

namespace shakedown::test_support {

// Only one at a time.
class ArmedPoint {
 public:
  ArmedPoint(Point point, uint32_t step, int error) {
    PageControl& control = probe::internal::page->control;
    Arm& arm = control.arms[0];
    arm.id = 1;
    arm.point = static_cast<uint32_t>(point);
    arm.flags = 0;
    arm.step = step;
    arm.occurrence = 1;
    arm.seen = 0;
    arm.action = ArmAction::kIoError;
    arm.argument = error;
    arm.state = static_cast<uint32_t>(ArmState::kArmed);
    control.armed = uint64_t{1} << static_cast<unsigned>(point);
  }
  ~ArmedPoint() {
    probe::internal::page->control.armed = 0;
    probe::internal::page->control.arms[0].state = static_cast<uint32_t>(ArmState::kEmpty);
  }
  ArmedPoint(const ArmedPoint&) = delete;
  ArmedPoint& operator=(const ArmedPoint&) = delete;

  bool acted() const {
    return probe::internal::page->control.arms[0].state != static_cast<uint32_t>(ArmState::kArmed);
  }
};

}  // namespace shakedown::test_support
