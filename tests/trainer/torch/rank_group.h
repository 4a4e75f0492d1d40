// Starts the ranks of a job as a launcher would, in a directory of the test's own, and reads what
// they left.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/process/spawn.h"
#include "harness/wire/job.h"
#include "harness/wire/ledger.h"
#include "tests/support/control_double.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {

// 3 ranks, the real digits, dropout, two buckets and accumulation; an epoch has 18 steps. Limits
// are so wide that a busy machine does not reach them.
JobConfig QuickJob();

// What one rank of one attempt left behind.
struct RankRecord {
  WaitStatus status = WaitStatus::Exited(0);
  std::vector<Json> log;
  std::string errors;  // stderr
  Ledger ledger;       // empty where the rank made none
  // Lines of this event.
  std::vector<Json> Events(std::string_view event) const;
  // Of WARNING and ERROR lines.
  std::vector<std::string> Alarms() const;
  // The row of each step as it stands in the ledger, without its time.
  std::map<uint64_t, std::string> Rows() const;
  const LedgerStep* Step(uint64_t step) const;
};

// One arm of a rank, and what a test does with the rank.
using Arms = std::map<int, std::vector<ArmFields>>;

class RankGroup {
 public:
  explicit RankGroup(const JobConfig& job) : job_(job) {}
  ~RankGroup();  // ends what still runs

  // Starts all ranks of an attempt. Those with arms have met a controller's double and joined the
  // process group when it returns.
  void Start(int attempt, const Arms& arms = {});
  // Waits for all and reads what they left.
  std::vector<RankRecord> Wait();
  std::vector<RankRecord> Run(int attempt, const Arms& arms = {}) {
    Start(attempt, arms);
    return Wait();
  }

  JobConfig& job() { return job_; }  // written anew at each start
  MetProcess& met(int rank) { return *met_.at(rank); }
  void Signal(int rank, int signal);
  std::filesystem::path checkpoints() const { return directory_.path() / checkpoint_name_; }
  // Another place for checkpoints than "checkpoint", which is made where it is missing.
  void UseCheckpoints(const std::string& name) { checkpoint_name_ = name; }
  std::filesystem::path rank_dir(int rank) const;
  bool IsPublished(int64_t step) const;
  std::string Weights(int rank) const;  // weights-end.bin
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  void StartRank(int rank);

  JobConfig job_;
  std::string checkpoint_name_ = "checkpoint";
  TempDir directory_;
  int attempt_ = 0;
  std::vector<SpawnedProcess> ranks_;
  std::map<int, std::unique_ptr<ControlDouble>> controls_;
  std::map<int, std::unique_ptr<MetProcess>> met_;
  std::vector<std::unique_ptr<MetProcess>> workers_;
};

}  // namespace shakedown::test_support
