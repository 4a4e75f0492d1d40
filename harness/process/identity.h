// Who a process is. A pid alone may be somebody else's by now.
#pragma once

#include <sys/types.h>

#include <string>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/wire/json.h"

namespace shakedown {

// pid + start time (field 22 of /proc/PID/stat, clock ticks since boot) + boot id.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;
  std::string boot_id;
  bool operator==(const ProcessIdentity&) const = default;
};

// What /proc/PID/stat says. ESRCH when there is no such process.
struct ProcessStat {
  std::string name;  // the kernel's, at most 15 bytes; for people, never to select by
  char state = '-';  // 'R', 'S', 'D', 'T', 'Z', ...
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  uint64_t start_time = 0;
};
Result<ProcessStat> ReadProcessStat(pid_t pid);

Result<ProcessIdentity> IdentityOf(pid_t pid);
std::string BootId();

// Opens a pidfd and makes sure that it is this process and no later one with the same pid.
// ESRCH when it is gone.
Result<UniqueFd> OpenPidfd(const ProcessIdentity& identity);

// Sends a signal through a pidfd. ESRCH when it is gone.
Status SignalPidfd(int pidfd, int signal);

Json ToJson(const ProcessIdentity& identity);
Result<ProcessIdentity> IdentityFromJson(const Json& json);

}  // namespace shakedown
