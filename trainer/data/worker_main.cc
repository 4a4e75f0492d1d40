// shakedown-data-worker: a data-loading process of a rank. Started by the rank (worker_pool.h), not
// by people: it expects a socket and a ring as descriptors 3 and 4.
#include <CLI/CLI.hpp>
#include <csignal>
#include <string>

#include "harness/base/log.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/json.h"
#include "trainer/data/worker.h"

namespace {

int Usage(const std::string& message) {
  shakedown::LogError(message);
  return shakedown::kRankUsage;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shakedown;
  InitLog("shakedown-data-worker");
  // A worker lives as long as its rank: a rank that stops gracefully on a signal to the whole group
  // still needs the batches of its last step.
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);

  CLI::App app("A data-loading process of a rank of the reference trainer.");
  std::string job_text;
  WorkerOptions options;
  app.add_option("--job", job_text, "the job's configuration, JSON")->required();
  app.add_option("--rank", options.rank)->required();
  app.add_option("--worker", options.worker)->required();
  app.add_option("--first-batch", options.first_batch)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kRankUsage;
  }
  const Result<Json> json = ParseJson(job_text);
  if (!json) return Usage("--job: " + json.error().message);
  Result<JobConfig> job = JobConfigFromJson(*json);
  if (!job) return Usage("--job: " + job.error().message);
  options.job = *std::move(job);
  if (options.rank < 0 || options.rank >= options.job.ranks || options.worker < 0 ||
      options.worker >= options.job.workers || options.first_batch < 1) {
    return Usage("--rank, --worker or --first-batch lies outside the job");
  }
  return RunWorker(options);
}
