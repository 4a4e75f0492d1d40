// Run directories for tests, made without running anything: a sound job that meets one of the smoke
// suite's faults, as the controller, the launcher and the ranks would have recorded it. A test
// changes what it likes (a record, a line, a bit) and writes it, sealed, to a folder.
//
// Numbers are those of the smoke suite: 3 ranks, 60 steps of 20 ms, a checkpoint every 10 steps,
// 1,797 samples, so that an epoch ends with step 37.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/checks/check.h"
#include "harness/wire/event.h"
#include "harness/wire/job.h"
#include "harness/wire/json.h"
#include "harness/wire/ledger.h"
#include "harness/wire/scenario.h"

namespace shakedown::test_support {

struct FakeRank {
  LedgerHeader header;
  std::vector<LedgerRecord> ledger;
  std::vector<Json> log;
  std::string weights_start;
  std::string weights_end;

  LedgerStep& Row(uint64_t step);
};

struct FakeAttempt {
  int attempt = 0;
  std::vector<FakeRank> ranks;
  std::vector<Json> launcher;
};

// What the job does, where a sound job would do otherwise.
struct JobShape {
  int64_t resume_from = 30;  // of attempt 1
  int64_t last_step = 60;
  int64_t lr_of_step_before = 0;  // 1: the learning rate lags by one step
};

class RunDirBuilder {
 public:
  static RunDirBuilder Control(const JobShape& shape = {});
  // SIGKILL of rank 1 at the door of the all-reduce of step 39; group restart from 30.
  static RunDirBuilder RankKilled(const JobShape& shape = {});
  // Rank 1 never enters the all-reduce of step 39; the collective timeout of 5 s fires.
  static RunDirBuilder CollectiveTimeout();
  // The same with a collective timeout of 10 min and a watchdog of 1 s.
  static RunDirBuilder HangWatchdog();
  // No space while checkpoint 20 is written.
  static RunDirBuilder DiskFull();
  // Worker 0 of rank 0 slow from batch 12 on; replaced after 1 s.
  static RunDirBuilder SlowDataWorker();
  // Refused allocation in step 15 on rank 0.
  static RunDirBuilder OutOfMemory();

  Plan plan;
  std::vector<Event> observed;  // without the arrivals of lines, which are made when written
  std::vector<Event> injected;
  std::vector<Json> checkpoints;  // checkpoints.jsonl
  std::vector<FakeAttempt> attempts;
  std::vector<FakeRank> reference;
  Json key;
  Json run_json;              // without the plan
  std::vector<Json> journal;  // records without their sum
  bool write_seal = true;

  JobConfig& job() { return plan.scenario.job; }
  Expectation& expect() { return plan.scenario.expect; }
  Event& FindObserved(std::string_view name, size_t index = 0);
  Event& FindInjected(std::string_view name, size_t index = 0);
  // Removes lines of a rank's log (nullopt: launcher) of that event; returns how many.
  size_t RemoveLines(int attempt, std::optional<int> rank, std::string_view event);
  Json* FindLine(int attempt, std::optional<int> rank, std::string_view event);

  // `directory` exists and is empty.
  void WriteTo(const std::filesystem::path& directory) const;

 private:
  explicit RunDirBuilder(const std::string& name);

  void BeginAttempt(int attempt, int64_t resume_from);
  void Step(int64_t step);
  void StepsUpTo(int64_t last);
  void Save(int64_t step);
  void FinishJob();
  void EndRun();
  void Inject(const Injection& injection, std::optional<int64_t> undone_after_ms = std::nullopt);
  void Exit(int rank, std::optional<int> code, const std::string& signal, const std::string& by);
  void FailAttempt(int cause, const std::string& reason, int64_t last_step);
  void Observe(const char* event, Json fields);
  void Secret(const char* event, Json fields);
  void Log(int rank, const char* level, const char* event, Json fields = Json::object());
  void Launcher(const char* level, const char* event, Json fields = Json::object());
  void SamplePage(int rank, const std::string& point, int64_t step, bool final = false);
  void Inspect(const char* reason);
  void Sleep(int64_t ms) { now_ns_ += ms * 1'000'000; }
  void MakeReference();
  LedgerStep MakeRow(int64_t step, int rank) const;

  JobShape shape_;
  int64_t now_ns_ = 1'000'000'000'000;
  int64_t step_ = 0;               // last completed in this attempt
  std::vector<int64_t> complete_;  // checkpoints that lie there
  std::vector<int64_t> count_;     // passes of the main lane, by rank
};

// Seals what lies in the folder of a run now, as the controller would at its end.
void SealAgain(const std::filesystem::path& directory);

// Writes the run to a fresh folder and calls one check on it, as the runner would.
Finding JudgeOne(const RunDirBuilder& run, std::string_view check);
// The same after `tamper` has changed the sealed folder.
Finding JudgeOneAfter(const RunDirBuilder& run, std::string_view check,
                      const std::function<void(const std::filesystem::path&)>& tamper);

}  // namespace shakedown::test_support
