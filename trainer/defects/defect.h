// Planted bugs: what the checks must catch (catalog.def). Each is a program of its own, linked from
// the objects of the sound one and planted.cc; the sound programs have none. Nothing that a check
// or the diagnosis reads tells them apart.
#pragma once

namespace shakedown {

enum class Defect {
  kNone,
#define DEFECT(constant, what) constant,
#include "trainer/defects/catalog.def"
#undef DEFECT
};

// The program's: kNone unless planted.cc defines another.
extern const Defect kDefect;

namespace internal {
void NoteDefectActed();
}  // namespace internal

// Whether the program has this bug, asked where it acts. Each yes counts: one byte more in the file
// ".acted" beside the program, which no check and no diagnosis reads, proves to a test that the bug
// was there to be caught.
inline bool Planted(Defect defect) {
  if (kDefect != defect) [[likely]]
    return false;
  internal::NoteDefectActed();
  return true;
}

}  // namespace shakedown
