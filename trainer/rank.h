// One rank of the training, behind an interface without torch: main.cc prepares what must exist
// before torch does anything, and RunRank trains.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "harness/base/status.h"
#include "harness/wire/checkpoint_format.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/job.h"
#include "trainer/config.h"
#include "trainer/data/idx.h"
#include "trainer/data/worker_pool.h"
#include "trainer/observe/event_log.h"
#include "trainer/observe/heartbeat_writer.h"
#include "trainer/observe/ledger_writer.h"
#include "trainer/termination.h"

namespace shakedown {

struct RankContext {
  const RankEnvironment& environment;
  const JobConfig& job;
  const std::filesystem::path& checkpoint_dir;
  int checkpoint_fd = -1;  // of checkpoint_dir; the caller's
  EventLog& log;
  LedgerWriter& ledger;
  HeartbeatWriter& heartbeat;
  Termination& termination;
  const DataSet& data_set;
  // Step that this rank would resume from (0: a fresh start); the group goes by rank 0's.
  int64_t found_step = 0;
  // Data workers that begin at the step after `found_step`.
  std::unique_ptr<WorkerPool> workers;
  // Starts others, where rank 0's checkpoint is another one.
  std::function<Result<std::unique_ptr<WorkerPool>>(int64_t first_step)> start_workers;
};

struct RankResult {
  RankExit exit = kRankOk;
  int64_t step = 0;  // last complete one
};

// Joins the group, loads the checkpoint, trains to the end or to the agreed stop, and tears down.
// Whatever goes wrong is logged and comes back as exit status; nothing is thrown. After a failure
// threads of torch may still be waiting for peers: the caller ends the process with _exit.
RankResult RunRank(RankContext& context);

}  // namespace shakedown
