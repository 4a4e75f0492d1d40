// The processes below one: what it started, what those started, and, when it is a subreaper, the
// orphans that it adopted.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/process/identity.h"

namespace shakedown {

struct TreeProcess {
  ProcessIdentity identity;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '-';  // as in ProcessStat; 'Z': ended, not reaped yet
};

struct ProcessTree {
  std::vector<TreeProcess> processes;  // parents before their children; without the root
  // Processes came or went while /proc was read, so that one may be missing here.
  bool settled = true;
};

// Reads all of /proc once. A process is below `root` when its chain of parents leads there now; one
// whose parents ended without a subreaper in between is init's.
Result<ProcessTree> ProcessesBelow(pid_t root);

// Whether the chain of parents of `pid` leads to `root` now. Reads only the processes on the way.
bool IsBelow(pid_t pid, pid_t root);

// One round of SIGKILL to all of them, and to the process groups of those that are the caller's
// children: a chain of processes that each fork the next and exit is faster than any look at /proc,
// but does not outrun its group. What was forked meanwhile is for the next round. REQUIRES: no
// other thread reaps children now.
void KillRound(const std::vector<TreeProcess>& processes);

// The command line for people: arguments separated by spaces, "[name]" when there is none, at most
// 200 bytes. Empty when the process is gone.
std::string CommandOf(pid_t pid);

}  // namespace shakedown
