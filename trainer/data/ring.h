// A ring of checksummed slots in shared memory, from a data worker to its rank.
//
// The memory is a memfd: it has no name that could be left behind, and it cannot change its size.
// The ring says nothing about which slots are full: that goes over the socket (worker_protocol.h),
// whose packets also order the memory accesses of the two processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"

namespace shakedown {

class Ring {
 public:
  // New shared memory for `slots` slots of `payload_bytes` each.
  static Result<Ring> Create(int slots, size_t payload_bytes);
  // The same memory in the process that inherited it. An Error when it has another size.
  static Result<Ring> Map(UniqueFd memory, int slots, size_t payload_bytes);

  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&&) = delete;
  ~Ring();

  int fd() const { return memory_.get(); }

  // Where the `position`-th batch (from 0) of a worker process travels.
  int SlotOf(int64_t position) const { return static_cast<int>(position % slots_); }

  // REQUIRES: payload.size() == payload_bytes.
  void Put(int slot, int64_t number, std::span<const uint8_t> payload);
  // Copies the slot out, then compares the copy's checksum and number: what is returned is what was
  // put, whatever happens to the memory meanwhile. An Error says what was found.
  Status Take(int slot, int64_t number, std::span<uint8_t> payload) const;

 private:
  Ring(UniqueFd memory, int slots, size_t payload_bytes, uint8_t* base);
  uint8_t* Slot(int slot) const;

  UniqueFd memory_;
  int slots_;
  size_t payload_bytes_;
  uint8_t* base_;
};

}  // namespace shakedown
