// The kernel's process connector (netlink, CONFIG_PROC_EVENTS): tells the exit status of every
// process of the machine to whom may listen (CAP_NET_ADMIN in the initial user namespace). The
// second source of exit statuses, for kernels whose pidfds do not tell them (before Linux 6.15).
#pragma once

#include <sys/types.h>

#include <vector>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/process/wait_status.h"

namespace shakedown {

struct ProcExit {
  pid_t pid = 0;
  WaitStatus status = WaitStatus::Exited(0);
};

class ProcConnector {
 public:
  // An Error where it may not be listened to, or the kernel does not have it.
  static Result<ProcConnector> Open();

  int fd() const { return socket_.get(); }
  // Exits of whole processes since the last call; does not block. Under a storm of events the
  // kernel drops some: what is missing here is unknown, not alive.
  std::vector<ProcExit> Read();

 private:
  UniqueFd socket_;
};

}  // namespace shakedown
