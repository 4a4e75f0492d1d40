// The parent and subreaper of everything that a run starts. Carries out the controller's commands
// (protocol.h), and, when the controller is gone, undoes what it did and ends what is left.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/base/unique_fd.h"
#include "harness/process/mount_namespace.h"
#include "harness/process/process_tree.h"
#include "harness/process/spawn.h"
#include "harness/reaper/protocol.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

class Reaper {
 public:
  // `socket` and `controller` (its pidfd) are the ends that the controller passed.
  static Result<Reaper> Make(RunDir run, UniqueFd socket, UniqueFd controller);

  // Until the controller shuts us down or is gone. Returns the exit status of the process: 0 when
  // everything was undone and ended.
  int Run();

 private:
  struct Answer {
    Json body = Json::object();
    std::vector<UniqueFd> descriptors;
  };
  struct Outgoing {
    Json body;
    std::vector<UniqueFd> descriptors;
  };
  struct Holder {
    SpawnedProcess process;
    UniqueFd socket;  // its end of life is our closing of this
    Namespaces namespaces;
  };
  enum class Turn { kGoOn, kShutDown, kControllerLost };

  explicit Reaper(RunDir run) : run_(std::move(run)) {}

  Turn WaitForNext();
  Turn ReadCommands();
  void Handle(ReaperMessage message);
  Result<Answer> Carry(const std::string& command, ReaperMessage& message);

  Result<Answer> ProvisionPrivateFs(const Json& request);
  Result<Answer> StartJob(const Json& request, std::vector<UniqueFd>& descriptors);
  Result<Answer> InspectLeftovers();
  Result<Answer> EndAll(const Json& request);
  Result<Answer> KeepPage(const Json& request, std::vector<UniqueFd>& descriptors);

  void Send(Json body, std::vector<UniqueFd> descriptors = {});
  // Sends what fits into the socket; the rest waits for room.
  void Flush();

  // Reaps every child that has ended, and tells the controller.
  void Reap();
  Result<ProcessTree> Others();  // all below us but the holder
  // SIGKILL until none is left. Returns those that remain at the deadline.
  Result<std::vector<TreeProcess>> EndSubtree(Milliseconds deadline);
  void EndHolder();
  void WritePages();
  int ShutDown();
  int OnControllerLost();

  RunDir run_;
  UniqueFd socket_;
  UniqueFd controller_;
  UniqueFd child_signal_;  // signalfd of SIGCHLD
  std::deque<Outgoing> outgoing_;
  std::vector<ProcessIdentity> jobs_;
  std::optional<Holder> holder_;
  std::map<std::string, UniqueFd> pages_;  // by name relative to the run
  std::optional<Milliseconds> shutdown_deadline_;
  Json shutdown_id_;
};

}  // namespace shakedown
