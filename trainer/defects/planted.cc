// Linked into one program per line of catalog.def, with PLANTED_DEFECT set to its constant.
#include "trainer/defects/defect.h"

const shakedown::Defect shakedown::kDefect = shakedown::Defect::PLANTED_DEFECT;
