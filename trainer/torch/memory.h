// The device's memory as the training sees it. On the CPU torch's allocator has no limit of its own
// and its error is a plain RuntimeError, so that an out-of-memory could not be told from a bug;
// this one counts what is in use and, where the probe is armed to, refuses the way CUDA's does.
#pragma once

#include <cstdint>

namespace shakedown {

// Replaces torch's CPU allocator for the whole process. REQUIRES: called once, before any tensor is
// made that outlives the call.
void InstallCountingAllocator();

// What was refused last on the calling thread.
struct RefusedAllocation {
  uint64_t requested_bytes = 0;
  uint64_t in_use_bytes = 0;
};
RefusedAllocation LastRefused();

// While one exists, allocations of its thread may be refused: c10::OutOfMemoryError, the type that
// CUDA's allocator throws.
class MemoryLimitScope {
 public:
  MemoryLimitScope();
  ~MemoryLimitScope();
  MemoryLimitScope(const MemoryLimitScope&) = delete;
  MemoryLimitScope& operator=(const MemoryLimitScope&) = delete;
};

}  // namespace shakedown
