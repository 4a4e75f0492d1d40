// Planted recovery bugs: what the checks must catch. Each is a separate program, linked from the
// trainer's own objects and one file of this folder that says which bug it has; shakedown-trainer
// itself is linked with none.cc and has none. Nothing that a check or the diagnosis reads tells them
// apart.
#pragma once

namespace shakedown {

enum class Defect {
  kNone,
  kStartsFromZero,       // resumes from nothing although there is a checkpoint
  kEndsEarly,            // ends one step before the last, with exit 0
  kStaleLearningRate,    // uses the learning rate of the step before
  kLoadsOlderCheckpoint  // takes the one before the newest
};

// Defined by the program.
extern const Defect kDefect;

}  // namespace shakedown
