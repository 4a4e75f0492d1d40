// The ways in which an injector may touch the job. Declared here, implemented by harness/run for a
// real job and by tests/support for a victim program, so that injectors never include the harness's
// run and one contract test serves every fault.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/process/identity.h"
#include "harness/process/wait_status.h"
#include "harness/wire/progress_page.h"

namespace shakedown {

struct ProcessRef {
  ProcessIdentity identity;
  int rank = -1;
  std::optional<int> worker;
};

class Reach {
 public:
  virtual ~Reach() = default;

  // The process that the injection acts on, and those of the same kind on other ranks.
  virtual ProcessRef target() const = 0;
  virtual std::vector<ProcessRef> bystanders() const = 0;

  // Through the pidfd taken at hello, never by pid.
  virtual Status Signal(const ProcessRef& process, int signal) = 0;
  // nullopt while it runs; the kernel's word where it gives one.
  virtual std::optional<WaitStatus> Exit(const ProcessRef& process) const = 0;
  // State letter of /proc/PID/stat ('R', 'S', 'D', 'T', 'Z'); '-' when gone.
  virtual char State(const ProcessRef& process) const = 0;
  // Observed half of its page; never null; valid while the Reach lives. Untrusted.
  virtual const PageObserved* Page(const ProcessRef& process) const = 0;

  // The job's checkpoint directory, opened by the controller from outside the job's namespaces; -1
  // when there is none.
  virtual int CheckpointDirectory() const = 0;
  // The same as a path that reaper and `clean` can open, for undo recipes; with CheckpointHolder(),
  // as that process sees it.
  virtual std::string CheckpointPath() const = 0;
  // The process whose mount namespace has the private filesystem; nullopt when there is none.
  virtual std::optional<ProcessIdentity> CheckpointHolder() const { return std::nullopt; }
  // Whether that directory lies on a private filesystem of this run.
  virtual bool CheckpointFilesystemIsPrivate() const = 0;
  // The run directory, where evidence goes: its filesystem must stay usable whatever is injected.
  // -1 when there is none (a victim program).
  virtual int RunDirectory() const { return -1; }
};

}  // namespace shakedown
