// The rank's half of start method "forkserver" (the term of Python's multiprocessing and of
// torchelastic's start_method): one process has loaded LibTorch, which costs 0.4 s of CPU, and
// every rank is a copy of it.
#pragma once

namespace shakedown {

// Call first in main(), before any thread exists. In a process that the launcher did not start as a
// fork server: returns false at once. In one: serves until the launcher closes the socket, then
// exits. Returns true in each rank: it is a child of the launcher, leads a session of its own, and
// has its environment, stdin, stdout, stderr and heartbeat page as if it had been exec'ed. Only
// /proc/PID/environ still shows the server's.
bool ServeForks();

}  // namespace shakedown
