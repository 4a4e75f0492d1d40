// Verdicts with round numbers, for golden reports.
#pragma once

#include "analysis/report/report.h"

namespace shakedown::test_support {

RunVerdict ControlRun();
RunVerdict KilledRun();
RunVerdict FailedRun();   // out_of_memory, simulated; resume_equal is broken
RunVerdict InvalidRun();  // the fault is not proven
RunVerdict SkippedRun();
SuiteResult SampleSuite();
RepeatResult SampleRepeat();

}  // namespace shakedown::test_support
