// The name of every file of a run, once. See README.md beside this file for what is in each.
#pragma once

#include <filesystem>
#include <string>

namespace shakedown {

// Version of every record and report: `schema_version`.
inline constexpr int kSchemaVersion = 1;

class RunDir {
 public:
  explicit RunDir(std::filesystem::path root) : root_(std::move(root)) {}
  const std::filesystem::path& root() const { return root_; }

  // What diagnosis may read.
  std::filesystem::path observed() const { return root_ / "observed.jsonl"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints.jsonl"; }
  std::filesystem::path job_config() const { return root_ / "job.json"; }
  std::filesystem::path attempt(int k) const { return root_ / ("attempt-" + std::to_string(k)); }
  std::filesystem::path rank(int k, int r) const {
    return attempt(k) / ("rank-" + std::to_string(r));
  }
  std::filesystem::path worker(int k, int r, int w) const {
    return attempt(k) / ("worker-" + std::to_string(r) + "." + std::to_string(w));
  }
  std::filesystem::path launcher_log(int k) const { return attempt(k) / "launcher.jsonl"; }

  // Secret from diagnosis.
  std::filesystem::path run_json() const { return root_ / "run.json"; }
  std::filesystem::path injected() const { return root_ / "injected.jsonl"; }
  std::filesystem::path journal() const { return root_ / "journal.jsonl"; }
  std::filesystem::path undone() const { return root_ / "undone.jsonl"; }
  std::filesystem::path verdict() const { return root_ / "verdict.json"; }

  std::filesystem::path seal() const { return root_ / "seal.json"; }
  std::filesystem::path reference() const { return root_ / "reference"; }
  std::filesystem::path final_checkpoint() const { return root_ / "final"; }
  // Where the job saves; a private filesystem is mounted here when a fault needs one.
  std::filesystem::path checkpoint_dir() const { return root_ / "checkpoint"; }
  std::filesystem::path tmp() const { return root_ / "tmp"; }
  std::filesystem::path launcher_stdout() const { return root_ / "launcher.stdout.log"; }
  std::filesystem::path launcher_stderr() const { return root_ / "launcher.stderr.log"; }

 private:
  std::filesystem::path root_;
};

// Files inside attempt-K/rank-R.
inline constexpr char kRankStdout[] = "stdout.log";
inline constexpr char kRankStderr[] = "stderr.log";
inline constexpr char kRankLog[] = "log.jsonl";
inline constexpr char kRankLedger[] = "ledger.bin";
inline constexpr char kRankPage[] = "page.bin";
inline constexpr char kRankStacks[] = "stacks.txt";
inline constexpr char kRankFlightRecorder[] = "flight_recorder.json";
// Raw bytes of all parameters in registration order: after the start or load, and at the end.
inline constexpr char kRankWeightsStart[] = "weights-start.bin";
inline constexpr char kRankWeightsEnd[] = "weights-end.bin";

}  // namespace shakedown
