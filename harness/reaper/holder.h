// The process that keeps a private filesystem: it mounts a tmpfs in namespaces of its own and waits
// for the reaper to let go of it.
#pragma once

#include <cstdint>
#include <string>

namespace shakedown {

// Where the holder finds its socket to the reaper.
inline constexpr int kHolderSocketFd = 3;

// Mounts, tells the reaper ({"user_namespace"} and the root directory, or {"error", "code"}), and
// waits for the end of the connection. Returns the exit status of the process.
int HoldPrivateFilesystem(const std::string& mountpoint, int64_t bytes);

}  // namespace shakedown
