// Owns a pool of data workers, as a rank does, and waits to be killed.
//   victim-pool-owner WORKER_BINARY JOB_JSON
// After the first batch it prints the identity of worker 0 as a line of JSON.
#include <unistd.h>

#include <cstdio>

#include "harness/wire/json.h"
#include "trainer/data/worker_pool.h"

int main(int argc, char** argv) {
  using namespace shakedown;
  if (argc != 3) return 2;
  const Result<Json> json = ParseJson(argv[2]);
  if (!json) return 2;
  const Result<JobConfig> job = JobConfigFromJson(*json);
  if (!job) return 2;
  WorkerPoolOptions options;
  options.worker_binary = argv[1];
  options.job = *job;
  const auto pool = WorkerPool::Start(options);
  if (!pool) {
    std::fprintf(stderr, "%s\n", pool.error().message.c_str());
    return 1;
  }
  if (!(*pool)->Next()) return 1;
  std::printf("%s\n", DumpJson(ToJson((*pool)->process(0))).c_str());
  std::fflush(stdout);
  while (true) ::pause();
}
