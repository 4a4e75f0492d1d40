// Every environment variable that Shakedown or its reference job sets or reads, once.
#pragma once

namespace shakedown::env {

// Set by the controller for the job.
inline constexpr char kControlSocket[] = "SHAKEDOWN_CONTROL_SOCKET";  // path of the control socket
inline constexpr char kReference[] = "SHAKEDOWN_REFERENCE_JOB";       // "1": at EOF of a hold, exit
inline constexpr char kTmpDir[] = "TMPDIR";  // run-private; what is left in it counts as left over

// Set by the launcher for each rank: the names of torchelastic.
inline constexpr char kRank[] = "RANK";
inline constexpr char kLocalRank[] = "LOCAL_RANK";
inline constexpr char kWorldSize[] = "WORLD_SIZE";
inline constexpr char kLocalWorldSize[] = "LOCAL_WORLD_SIZE";
inline constexpr char kRestartCount[] = "TORCHELASTIC_RESTART_COUNT";  // the attempt, from 0
inline constexpr char kMaxRestarts[] = "TORCHELASTIC_MAX_RESTARTS";
inline constexpr char kRunId[] = "TORCHELASTIC_RUN_ID";

// Set by shakedown-launch for each rank of the reference trainer.
inline constexpr char kStoreFile[] = "SHAKEDOWN_STORE_FILE";      // FileStore of this attempt
inline constexpr char kRankDir[] = "SHAKEDOWN_RANK_DIR";          // attempt-K/rank-R
inline constexpr char kHeartbeatFd[] = "SHAKEDOWN_HEARTBEAT_FD";  // heartbeat.h
inline constexpr char kMicroBatchParts[] =
    "SHAKEDOWN_MICRO_BATCH_PARTS";  // after an OOM exit: split

// Set by a rank for its data workers.
inline constexpr char kWorker[] = "SHAKEDOWN_WORKER";  // worker index within the rank
inline constexpr char kIncarnation[] = "SHAKEDOWN_WORKER_INCARNATION";

// Numerics, pinned by the controller for every rank and recorded: other values give other bits.
inline constexpr char kCpuCapability[] = "ATEN_CPU_CAPABILITY";
inline constexpr char kMklCbwr[] = "MKL_CBWR";
inline constexpr char kOmpThreads[] = "OMP_NUM_THREADS";
inline constexpr char kMklThreads[] = "MKL_NUM_THREADS";

// Read by the harness.
inline constexpr char kTrainer[] = "SHAKEDOWN_TRAINER";    // another build of shakedown-trainer
inline constexpr char kLauncher[] = "SHAKEDOWN_LAUNCHER";  // and of shakedown-launch
inline constexpr char kLogLevel[] = "SHAKEDOWN_LOG_LEVEL";
inline constexpr char kCache[] =
    "SHAKEDOWN_CACHE";  // reference runs; default XDG_CACHE_HOME/shakedown
inline constexpr char kRunsDir[] = "SHAKEDOWN_RUNS";  // where runs go without --out; default ./runs

}  // namespace shakedown::env
