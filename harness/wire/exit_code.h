// Every exit status, one line each.
#pragma once

namespace shakedown {

// Of `shakedown` itself (design: contracts for scripts).
enum ExitCode : int {
  kExitPass = 0,
  kExitFail = 1,
  kExitUsage = 2,  // usage or scenario error; nothing was started
  kExitInvalid = 3,
  kExitInconclusive = 4,  // `diagnose`: cause unknown
  kExitError = 5,
  kExitDirty = 6,  // something could not be undone
  kExitSkipped = 77,
  kExitInterrupted = 130,  // SIGINT
  kExitTerminated = 143,   // SIGTERM
  kExitHangup = 129,       // SIGHUP
};

// Of a rank of the reference trainer. They begin at 64 so that they are not confused with a shell's
// or a library's 1 and 2, and end below 77 (skipped) and 126 (exec failed).
enum RankExit : int {
  kRankOk = 0,
  kRankUsage = 64,              // bad configuration or missing file
  kRankPeerLost = 65,           // a peer is gone: a victim, not a cause
  kRankCollectiveTimeout = 66,  // a collective did not complete in time: a victim, most likely
  kRankOutOfMemory = 67,
  kRankData = 68,  // data could not be read
  kRankCheckpoint =
      69,  // no checkpoint could be loaded although there is one, or the last save failed
  kRankNotFinite = 70,
  kRankTerminated = 71,   // stopped on SIGTERM after a checkpoint
  kRankControlLost = 72,  // the controller vanished during a hold
  kRankException = 73,    // anything else
};

// Of shakedown-launch.
enum LaunchExit : int {
  kLaunchOk = 0,
  kLaunchFailed = 1,  // the job failed and the restart budget is used up (or the policy is none)
  kLaunchUsage = 2,
  kLaunchStopped = 3,  // told to stop by a signal; all ranks ended
};

}  // namespace shakedown
