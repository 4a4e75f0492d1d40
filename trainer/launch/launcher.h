// The job: attempts, one after the other, until all ranks have succeeded or the budget is used up.
#pragma once

#include "trainer/launch/options.h"
#include "trainer/launch/stop_signals.h"

namespace shakedown {

// Returns the exit status of shakedown-launch (harness/wire/exit_code.h). Every rank that it
// started has ended and is reaped then, and nothing is left in TMPDIR. What happened stands in
// attempt-K/launcher.jsonl, and failures in a sentence on stderr.
//
// When the launcher itself is killed, its ranks live on until the job ends or a collective times
// out: ending them is the task of whoever supervises the job (shakedown-reaper, Slurm, systemd). A
// parent-death signal would not be reliable, since it misses what the ranks have started.
int RunJob(const LaunchOptions& options, StopSignals& stop);

}  // namespace shakedown
