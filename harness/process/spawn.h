// Starting a process: clone3 with a pidfd, then exec. Used by the reaper, the launcher and the
// trainer's worker pool. No Boost.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/process/identity.h"
#include "harness/process/wait_status.h"

namespace shakedown {

struct SpawnOptions {
  std::vector<std::string> argv;         // argv[0] is a path, or a name looked up in PATH
  std::vector<std::string> environment;  // NAME=value, complete
  std::string directory;                 // working directory; empty: inherited
  // {descriptor here, number in the child}. Descriptors that are not named are closed in the child;
  // 0, 1, 2 become /dev/null unless named.
  std::vector<std::pair<int, int>> descriptors;
  bool new_session = false;  // setsid
  // Entered before exec; the user namespace first. Both stay the caller's.
  std::optional<int> user_namespace_fd;
  std::optional<int> mount_namespace_fd;
};

struct SpawnedProcess {
  pid_t pid = -1;
  UniqueFd pidfd;
  ProcessIdentity identity;
};

// Returns once exec has succeeded. Signal mask, ignored signals and the like do not leak into the
// child: all signals are unblocked and at their defaults. An exec that fails is an Error that names
// the program.
Result<SpawnedProcess> Spawn(const SpawnOptions& options);

// waitid(P_PIDFD, WEXITED) without blocking: nullopt while it runs. Reaps.
Result<std::optional<WaitStatus>> TryWait(int pidfd);
// Blocks until it has ended. Reaps.
Result<WaitStatus> Wait(int pidfd);

// Exit status of a process that need not be our child and may have been reaped already, from its
// pidfd (PIDFD_GET_INFO with PIDFD_INFO_EXIT, Linux 6.15). nullopt when the kernel cannot tell.
std::optional<WaitStatus> ExitFromPidfd(int pidfd);

}  // namespace shakedown
