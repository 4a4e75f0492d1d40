#include "trainer/torch/memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <atomic>
#include <cstdio>

#include "injectors/probe/probe.h"

namespace shakedown {
namespace {

std::atomic<uint64_t> in_use{0};
thread_local bool limited = false;
thread_local RefusedAllocation refused;

// The real size of the block, so that what is subtracted is what was added.
void Free(void* block) {
  if (block == nullptr) return;
  in_use.fetch_sub(::malloc_usable_size(block), std::memory_order_relaxed);
  c10::free_cpu(block);
}

[[noreturn]] void Refuse(uint64_t bytes, uint64_t used) {
  refused = {bytes, used};
  char text[160];
  // The words of CUDA's allocator, which people and tools search for.
  std::snprintf(text, sizeof text,
                "CPU out of memory. Tried to allocate %.2f MiB. %.2f MiB is allocated by PyTorch.",
                static_cast<double>(bytes) / (1 << 20), static_cast<double>(used) / (1 << 20));
  throw c10::OutOfMemoryError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text);
}

struct CountingAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    if (limited) {
      const uint64_t used = in_use.load(std::memory_order_relaxed);
      if (probe::RefuseAllocation(bytes, used)) Refuse(bytes, used);
    }
    void* block = c10::alloc_cpu(bytes);  // null for no bytes
    if (block != nullptr) {
      in_use.fetch_add(::malloc_usable_size(block), std::memory_order_relaxed);
    }
    return {block, block, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void InstallCountingAllocator() {
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/255);
}

RefusedAllocation LastRefused() { return refused; }

MemoryLimitScope::MemoryLimitScope() { limited = true; }
MemoryLimitScope::~MemoryLimitScope() { limited = false; }

}  // namespace shakedown
