// One rank of one attempt, as its parent sees it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "harness/base/status.h"
#include "harness/process/spawn.h"
#include "trainer/fork_server/client.h"
#include "trainer/launch/heartbeat_page.h"
#include "trainer/launch/options.h"

namespace shakedown {

struct RankSetting {
  int rank = 0;
  int attempt = 0;
  int micro_batch_parts = 1;
  std::string run_id;
  std::filesystem::path store_file;
};

class RankProcess {
 public:
  // Makes attempt-K/rank-R with stdout.log and stderr.log, which must not exist yet, and starts the
  // command in a session of its own: Ctrl-C reaches the launcher, which decides what the ranks get.
  // By `server` when there is one; a server that fails is said, dropped, and the command started.
  static Result<RankProcess> Start(const LaunchOptions& options, const RankSetting& setting,
                                   std::optional<ForkServer>& server);

  pid_t pid() const { return process_.pid; }
  int pidfd() const { return process_.pidfd.get(); }
  const HeartbeatPage& heartbeat() const { return heartbeat_; }

  // What the launcher sent last; 0: nothing.
  int sent() const { return sent_; }
  // A rank that has ended already is no error.
  void Signal(int signal);

 private:
  RankProcess(SpawnedProcess process, HeartbeatPage heartbeat)
      : process_(std::move(process)), heartbeat_(std::move(heartbeat)) {}

  SpawnedProcess process_;
  HeartbeatPage heartbeat_;
  int sent_ = 0;
};

// What a process's main thread is doing, to tell one that is stuck from one that is about to end.
struct Activity {
  char state = '?';          // of /proc/PID/stat
  uint64_t run_time_ns = 0;  // on a CPU so far
  bool operator==(const Activity&) const = default;
};
// nullopt where the kernel does not say. REQUIRES: `pid` is a child that is not reaped yet.
std::optional<Activity> ActivityOf(pid_t pid);

}  // namespace shakedown
