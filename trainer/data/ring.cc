#include "trainer/data/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/digest.h"

namespace shakedown {
namespace {

// A slot: its checksum, then what it covers: the batch's number and the payload. Rounded up to a
// cache line.
constexpr size_t kChecksumBytes = sizeof(uint64_t);
constexpr size_t kNumberBytes = sizeof(int64_t);

size_t SlotBytes(size_t payload_bytes) {
  return (kChecksumBytes + kNumberBytes + payload_bytes + 63) / 64 * 64;
}

size_t TotalBytes(int slots, size_t payload_bytes) {
  return static_cast<size_t>(slots) * SlotBytes(payload_bytes);
}

uint64_t ChecksumOf(const uint8_t* covered, size_t payload_bytes) {
  return Xxh3Of64({reinterpret_cast<const char*>(covered), kNumberBytes + payload_bytes});
}

}  // namespace

Ring::Ring(UniqueFd memory, int slots, size_t payload_bytes, uint8_t* base)
    : memory_(std::move(memory)), slots_(slots), payload_bytes_(payload_bytes), base_(base) {}

Ring::Ring(Ring&& other) noexcept
    : memory_(std::move(other.memory_)),
      slots_(other.slots_),
      payload_bytes_(other.payload_bytes_),
      base_(std::exchange(other.base_, nullptr)) {}

Ring::~Ring() {
  if (base_ != nullptr) ::munmap(base_, TotalBytes(slots_, payload_bytes_));
}

Result<Ring> Ring::Create(int slots, size_t payload_bytes) {
  UniqueFd memory(::memfd_create("data-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return FailErrno("create shared memory for", "a data worker");
  if (::ftruncate(memory.get(), static_cast<off_t>(TotalBytes(slots, payload_bytes))) != 0) {
    return FailErrno("size the shared memory of", "a data worker");
  }
  // A peer that shrank it would hand us SIGBUS.
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return FailErrno("seal the shared memory of", "a data worker");
  }
  return Map(std::move(memory), slots, payload_bytes);
}

Result<Ring> Ring::Map(UniqueFd memory, int slots, size_t payload_bytes) {
  const size_t total = TotalBytes(slots, payload_bytes);
  struct stat st {};
  if (::fstat(memory.get(), &st) != 0) return FailErrno("stat", "the ring of a data worker");
  if (st.st_size != static_cast<off_t>(total)) {
    return Fail("cannot map the ring of a data worker: " + std::to_string(st.st_size) +
                " bytes, expected " + std::to_string(total) +
                "; rank and worker do not read the same data");
  }
  void* base = ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (base == MAP_FAILED) return FailErrno("map", "the ring of a data worker");
  return Ring(std::move(memory), slots, payload_bytes, static_cast<uint8_t*>(base));
}

uint8_t* Ring::Slot(int slot) const {
  SHAKEDOWN_ASSERT(slot >= 0 && slot < slots_);
  return base_ + static_cast<size_t>(slot) * SlotBytes(payload_bytes_);
}

void Ring::Put(int slot, int64_t number, std::span<const uint8_t> payload) {
  SHAKEDOWN_ASSERT(payload.size() == payload_bytes_);
  uint8_t* const covered = Slot(slot) + kChecksumBytes;
  std::memcpy(covered, &number, kNumberBytes);
  std::memcpy(covered + kNumberBytes, payload.data(), payload_bytes_);
  const uint64_t checksum = ChecksumOf(covered, payload_bytes_);
  std::memcpy(Slot(slot), &checksum, kChecksumBytes);
}

Status Ring::Take(int slot, int64_t number, std::span<uint8_t> payload) const {
  SHAKEDOWN_ASSERT(payload.size() == payload_bytes_);
  std::vector<uint8_t> copy(kChecksumBytes + kNumberBytes + payload_bytes_);
  std::memcpy(copy.data(), Slot(slot), copy.size());
  uint64_t checksum = 0;
  int64_t found = 0;
  std::memcpy(&checksum, copy.data(), kChecksumBytes);
  std::memcpy(&found, copy.data() + kChecksumBytes, kNumberBytes);
  if (checksum != ChecksumOf(copy.data() + kChecksumBytes, payload_bytes_)) {
    return Fail("slot " + std::to_string(slot) + " of a data worker's ring is damaged: its " +
                "checksum does not fit its content (batch " + std::to_string(number) + ")");
  }
  if (found != number) {
    return Fail("slot " + std::to_string(slot) + " of a data worker's ring holds batch " +
                std::to_string(found) + ", expected " + std::to_string(number));
  }
  std::memcpy(payload.data(), copy.data() + kChecksumBytes + kNumberBytes, payload_bytes_);
  return {};
}

}  // namespace shakedown
