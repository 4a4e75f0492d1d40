#include "trainer/defects/defect.h"

const shakedown::Defect shakedown::kDefect = shakedown::Defect::kNone;
