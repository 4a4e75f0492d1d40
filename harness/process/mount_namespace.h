// Private mounts: a mount namespace of one's own, with a tmpfs that nobody else sees and that ends
// with the last process and descriptor in it. Works as root, and as an ordinary user through a user
// namespace in which the user keeps its own uid.
#pragma once

#include <cstdint>
#include <string>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/process/identity.h"

namespace shakedown {

// Moves the calling process into a mount namespace of its own in which nothing propagates to or
// from others. Takes a user namespace too only when it must; returns whether it did. REQUIRES: a
// process with one thread.
Result<bool> EnterPrivateMounts();

// Mounts a tmpfs of `bytes` at the directory `mountpoint` and returns its root. REQUIRES:
// EnterPrivateMounts.
Result<UniqueFd> MountPrivateTmpfs(const std::string& mountpoint, int64_t bytes);

struct Namespaces {
  UniqueFd user;  // not valid when it is the caller's own
  UniqueFd mount;
};
// Those of another process, for SpawnOptions. ESRCH when it is gone.
Result<Namespaces> OpenNamespaces(const ProcessIdentity& process);

// Whether this machine and user can do the above, tried in a child.
struct PrivateMountsProbe {
  bool available = false;
  bool user_namespace = false;  // needs one
  std::string why_not;
};
PrivateMountsProbe ProbePrivateMounts();

}  // namespace shakedown
