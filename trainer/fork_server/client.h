// The launcher's half of start method "forkserver" (server.h).
#pragma once

#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/base/unique_fd.h"
#include "harness/process/spawn.h"

namespace shakedown {

class ForkServer {
 public:
  // Starts `command` and waits until it says that it can fork. An Error when it ends instead, says
  // that it cannot, takes longer than `limit`, or `stop_fd` becomes readable meanwhile. Its output
  // goes to our stderr. Whatever comes back, nothing is left that was not handed out.
  static Result<ForkServer> Start(const std::vector<std::string>& command, Nanoseconds limit,
                                  int stop_fd);
  ForkServer(ForkServer&&) noexcept = default;
  ForkServer& operator=(ForkServer&&) = delete;
  // Ends the server; ranks live on.
  ~ForkServer();

  // A rank: the server's environment with these settings (NAME=value) instead of or beside its own.
  // It is our child. After an Error the server is of no use any more.
  Result<SpawnedProcess> Fork(const std::vector<std::string>& settings, int out, int err,
                              int heartbeat);

 private:
  ForkServer(SpawnedProcess process, UniqueFd socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}

  SpawnedProcess process_;
  UniqueFd socket_;
};

}  // namespace shakedown
