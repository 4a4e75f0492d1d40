// The controller's hold on its reaper, the parent of everything that a run starts.
//
// All calls block until the reaper has answered, which takes milliseconds, or until a deadline: an
// Error with ETIMEDOUT. After an Error with EPIPE the reaper is gone; EndOrphans then does what it
// would have done. One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/base/unique_fd.h"
#include "harness/process/identity.h"
#include "harness/process/process_tree.h"
#include "harness/process/wait_status.h"
#include "harness/reaper/protocol.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

// A child of the reaper has ended and was reaped: the job, or an orphan that the reaper adopted.
struct ReaperEvent {
  enum class Role { kJob, kHolder, kOrphan };
  Role role = Role::kOrphan;
  ProcessIdentity process;
  WaitStatus status = WaitStatus::Exited(0);
};

// A tmpfs that only processes in the holder's namespaces see at its path. It ends with the last of
// those processes and of the descriptors in it, `root` included.
struct PrivateFilesystem {
  ProcessIdentity holder;  // for undo recipes and /proc/HOLDER/root
  bool user_namespace = false;
  UniqueFd root;  // its root directory, reached from outside
};

struct JobRequest {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // complete
  std::string directory;                 // absolute
  int stdout_fd = -1;                    // stay the caller's
  int stderr_fd = -1;
  bool in_private_fs = false;  // REQUIRES ProvisionPrivateFilesystem
};

struct StartedJob {
  ProcessIdentity process;
  UniqueFd pidfd;
};

struct LeftoverProcess {
  ProcessIdentity process;
  char state = '-';
  std::string command;  // for people
};

class ReaperClient {
 public:
  // Starts the reaper in a session of its own and makes the caller a subreaper too, so that nothing
  // is stranded when the reaper is killed. `run` must exist. From then on the caller's own helpers
  // must stay in the caller's session: that is how EndOrphans tells them from the run's processes.
  static Result<ReaperClient> Start(const std::string& reaper_binary, const RunDir& run);

  ReaperClient(ReaperClient&& other) noexcept;
  ReaperClient& operator=(ReaperClient&& other) = delete;
  // Without Shutdown the reaper undoes and ends everything, as if the controller had died; waits
  // for that.
  ~ReaperClient();

  // Readable when ReadEvents has something to say.
  int fd() const { return socket_.get(); }
  int pidfd() const { return pidfd_.get(); }
  const ProcessIdentity& identity() const { return identity_; }

  // What has happened since the last call; does not block. Events that arrive while another call
  // waits for its answer are kept for this one, so call it after each of them too.
  Result<std::vector<ReaperEvent>> ReadEvents();

  // Once per run. `mountpoint` is a canonical path of a directory.
  Result<PrivateFilesystem> ProvisionPrivateFilesystem(const std::string& mountpoint,
                                                       int64_t bytes);
  Result<StartedJob> StartJob(const JobRequest& request);

  // Every process below the reaper but the holder.
  Result<std::vector<LeftoverProcess>> InspectLeftovers();
  // SIGKILL to all of them until none is left. Returns what remains at the deadline.
  Result<std::vector<LeftoverProcess>> EndAll(Milliseconds deadline = Milliseconds(5000));

  // From now on the reaper writes the page's observed half to RUN/`name` if the controller dies.
  Status KeepPage(const std::string& name, int page_fd);

  // EndAll, then the holder, then the reaper itself. An Error says what remains.
  Status Shutdown(Milliseconds deadline = Milliseconds(5000));

  // For a reaper that is gone: ends everything that it left to us, and returns what remains at the
  // deadline. Ends the reaper first if it is there but does not answer. Touches no process that the
  // caller had before Start, none of its own session, and none below another run's reaper.
  // REQUIRES: no other thread reaps children now.
  Result<std::vector<LeftoverProcess>> EndOrphans(Milliseconds deadline = Milliseconds(5000));

 private:
  ReaperClient() = default;

  Result<ReaperMessage> Ask(Json request, const std::vector<int>& descriptors,
                            Milliseconds deadline);
  // The answer to request `id`; events on the way are queued.
  Result<ReaperMessage> AwaitAnswer(int64_t id, MonoTime deadline);
  Status QueueEvent(const Json& body);
  Result<std::vector<LeftoverProcess>> AskForProcesses(Json request, Milliseconds deadline);
  Result<std::vector<TreeProcess>> Orphans() const;

  UniqueFd socket_;
  UniqueFd pidfd_;
  ProcessIdentity identity_;
  std::vector<ProcessIdentity> before_;  // what the caller had already
  std::deque<ReaperEvent> events_;
  int64_t last_id_ = 0;
};

}  // namespace shakedown
