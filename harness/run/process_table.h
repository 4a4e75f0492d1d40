// The processes of a run that made themselves known, and how they ended.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/time.h"
#include "harness/base/unique_fd.h"
#include "harness/process/identity.h"
#include "harness/process/proc_connector.h"
#include "harness/process/wait_status.h"
#include "harness/run/event_loop.h"
#include "harness/wire/control.h"
#include "harness/wire/progress_page.h"

namespace shakedown {

struct TrackedProcess {
  ProcessIdentity identity;
  UniqueFd pidfd;
  Role role = Role::kRank;
  int attempt = 0;
  int rank = -1;  // the hint until the process joins, then what it passed to the process group
  std::optional<int> worker;
  int incarnation = 0;
  bool joined = false;

  UniqueFd socket;  // closed when the process left or misbehaved
  UniqueFd page_fd;
  ProgressPage* page = nullptr;  // mapped by us, read and write; contents are untrusted

  bool dead = false;
  MonoTime died;                   // when the kernel reported the end
  std::optional<WaitStatus> exit;  // how, once a source has told
  std::string exit_source;         // pidfd, connector, launcher

  TrackedProcess() = default;
  ~TrackedProcess();
  TrackedProcess(const TrackedProcess&) = delete;
  TrackedProcess& operator=(const TrackedProcess&) = delete;

  const PageObserved& observed() const { return page->observed; }
  std::string Describe() const;  // "rank 1", "worker 0 of rank 1"
};

// The kernel's word at this instant; TrackedProcess::dead follows when the loop gets to it.
bool HasEnded(const TrackedProcess& process);

class ProcessTable {
 public:
  struct Handlers {
    std::function<void(TrackedProcess&)> died;    // the kernel says that it ended
    std::function<void(TrackedProcess&)> exited;  // and how: exit is set
  };

  // `loop` must outlive the table.
  ProcessTable(EventLoop& loop, Handlers handlers);
  ~ProcessTable();

  // Makes the page (a memfd sealed against shrinking and growing), opens the pidfd and watches it.
  Result<TrackedProcess*> Add(pid_t pid, const HelloMessage& hello);

  // The launcher's word on the exit of `pid`: used only when the kernel does not tell.
  void LauncherSaid(int attempt, int rank, pid_t pid, WaitStatus status);

  std::vector<TrackedProcess*> All() const;
  std::vector<TrackedProcess*> OfAttempt(int attempt) const;
  // The youngest that matches; nullptr when there is none.
  TrackedProcess* Find(int attempt, int rank, std::optional<int> worker) const;
  // "pidfd", "connector" or "launcher": the best source of exit statuses on this machine, as far as
  // is known before the first exit.
  std::string ExitSource() const;

 private:
  void OnEpoll();
  void OnConnector();
  void SetExit(TrackedProcess& process, WaitStatus status, const char* source);

  EventLoop& loop_;
  Handlers handlers_;
  // pidfds, edge-triggered: one edge when the process ends (EPOLLIN) and one when it is reaped
  // (EPOLLHUP, Linux 6.15), which is when the kernel tells the status to others than the parent.
  UniqueFd epoll_;
  std::optional<ProcConnector> connector_;
  std::vector<std::unique_ptr<TrackedProcess>> processes_;
};

}  // namespace shakedown
