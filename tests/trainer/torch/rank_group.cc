#include "tests/trainer/torch/rank_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>

#include "harness/base/file.h"
#include "harness/wire/checkpoint_format.h"
#include "harness/wire/environment.h"
#include "harness/wire/run_dir.h"

namespace shakedown::test_support {
namespace {

RankRecord ReadRecord(const std::filesystem::path& directory, const WaitStatus& status) {
  RankRecord record;
  record.status = status;
  if (const auto text = ReadFile(directory / kRankLog)) {
    for (const std::string_view line : SplitLines(*text).complete) {
      record.log.push_back(*ParseJson(line));
    }
  }
  record.errors = ReadFile(directory / kRankStderr).value_or("");
  if (const auto bytes = ReadFile(directory / kRankLedger)) {
    const auto ledger = DecodeLedger(*bytes);
    EXPECT_TRUE(ledger) << ledger.error().message;
    if (ledger) record.ledger = *ledger;
  }
  return record;
}

}  // namespace

JobConfig QuickJob() {
  JobConfig job;
  job.data_dir = SHAKEDOWN_SOURCE_DIR "/trainer/data/digits";
  job.micro_batch = 16;
  job.steps = 24;
  job.checkpoint.every = 6;
  job.slow_data_warning = std::chrono::seconds(100);
  job.worker_deadline = std::chrono::seconds(100);
  job.collective_timeout = std::chrono::seconds(100);
  return job;
}

std::vector<Json> RankRecord::Events(std::string_view event) const {
  std::vector<Json> lines;
  for (const Json& line : log) {
    if (line["event"] == event) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> RankRecord::Alarms() const {
  std::vector<std::string> alarms;
  for (const Json& line : log) {
    if (line["level"] != "INFO") alarms.push_back(line["event"]);
  }
  return alarms;
}

std::map<uint64_t, std::string> RankRecord::Rows() const {
  std::map<uint64_t, std::string> rows;
  for (const LedgerRecord& record : ledger.records) {
    if (!std::holds_alternative<LedgerStep>(record)) continue;
    LedgerStep step = std::get<LedgerStep>(record);
    step.t_ns = 0;
    rows[step.step] = EncodeLedgerRecord(step);
  }
  return rows;
}

const LedgerStep* RankRecord::Step(uint64_t step) const {
  for (const LedgerRecord& record : ledger.records) {
    const auto* row = std::get_if<LedgerStep>(&record);
    if (row != nullptr && row->step == step) return row;
  }
  return nullptr;
}

RankGroup::~RankGroup() {
  for (const SpawnedProcess& rank : ranks_) {
    (void)SignalPidfd(rank.pidfd.get(), SIGKILL);
    (void)shakedown::Wait(rank.pidfd.get());
  }
}

std::filesystem::path RankGroup::rank_dir(int rank) const {
  return RunDir(directory_.path()).rank(attempt_, rank);
}

bool RankGroup::IsPublished(int64_t step) const {
  return std::filesystem::exists(checkpoints() / CheckpointManifestName(step));
}

std::string RankGroup::Weights(int rank) const {
  return ReadFile(rank_dir(rank) / kRankWeightsEnd).value_or("");
}

void RankGroup::Signal(int rank, int signal) {
  EXPECT_TRUE(SignalPidfd(ranks_.at(static_cast<size_t>(rank)).pidfd.get(), signal));
}

void RankGroup::StartRank(int rank) {
  const std::filesystem::path directory = rank_dir(rank);
  EXPECT_TRUE(MakeDirectories(directory));
  SpawnOptions options;
  options.argv = {SHAKEDOWN_BINARY_DIR "/shakedown-trainer", "--config",
                  directory_.path() / "job.json", "--checkpoint-dir", checkpoints()};
  const auto set = [&](const char* name, const std::string& value) {
    options.environment.push_back(std::string(name) + "=" + value);
  };
  set(env::kRank, std::to_string(rank));
  set(env::kWorldSize, std::to_string(job_.ranks));
  set(env::kRestartCount, std::to_string(attempt_));
  set(env::kStoreFile, directory_.path() / ("store-" + std::to_string(attempt_)));
  set(env::kRankDir, directory);
  set(env::kReference, "1");
  set(env::kOmpThreads, "1");
  set(env::kMklThreads, "1");
  set(env::kCpuCapability, "default");
  set(env::kMklCbwr, "COMPATIBLE");
  if (controls_.contains(rank)) set(env::kControlSocket, controls_[rank]->path());
  const UniqueFd errors(
      ::open((directory / kRankStderr).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  options.descriptors = {{errors.get(), 2}};
  auto process = Spawn(options);
  ASSERT_TRUE(process) << process.error().message;
  ranks_.push_back(std::move(*process));
}

void RankGroup::Start(int attempt, const Arms& arms) {
  attempt_ = attempt;
  controls_.clear();
  met_.clear();
  workers_.clear();
  ASSERT_TRUE(MakeDirectories(directory_.path() / "checkpoint"));
  ASSERT_TRUE(
      PublishFile(directory_.path() / "job.json", DumpJson(ToJson(job_)), Durability::kBuffered));
  for (const auto& [rank, fields] : arms) {
    auto control = ControlDouble::Listen();
    ASSERT_TRUE(control) << control.error().message;
    controls_[rank] = std::move(*control);
  }
  for (int rank = 0; rank < job_.ranks; ++rank) StartRank(rank);
  for (const auto& [rank, fields] : arms) {
    // First the rank itself, then its data workers, which have nothing armed.
    auto met = controls_[rank]->Meet([&fields](const HelloMessage&, ProgressPage* page) {
      for (size_t i = 0; i < fields.size(); ++i) PutArm(page, i, fields[i]);
    });
    ASSERT_TRUE(met) << met.error().message;
    met_[rank] = std::move(*met);
    for (int worker = 0; worker < job_.workers; ++worker) {
      auto met_worker = controls_[rank]->Meet();
      ASSERT_TRUE(met_worker) << met_worker.error().message;
      workers_.push_back(std::move(*met_worker));
    }
  }
  for (const auto& [rank, met] : met_) ASSERT_TRUE(met->AwaitJoined());
}

std::vector<RankRecord> RankGroup::Wait() {
  std::vector<RankRecord> records;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto status = shakedown::Wait(ranks_[rank].pidfd.get());
    EXPECT_TRUE(status) << status.error().message;
    records.push_back(
        ReadRecord(rank_dir(static_cast<int>(rank)), status.value_or(WaitStatus::Exited(-1))));
  }
  ranks_.clear();
  return records;
}

}  // namespace shakedown::test_support
