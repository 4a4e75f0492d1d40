#include "trainer/data/ring.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace shakedown {
namespace {

using ::testing::HasSubstr;
constexpr size_t kPayload = 100;

std::vector<uint8_t> Filled(uint8_t value) { return std::vector<uint8_t>(kPayload, value); }

TEST(Ring, TheOtherMappingTakesWhatWasPut) {
  Result<Ring> worker = Ring::Create(2, kPayload);
  ASSERT_TRUE(worker) << worker.error().message;
  const Result<Ring> rank = Ring::Map(UniqueFd(::dup(worker->fd())), 2, kPayload);
  ASSERT_TRUE(rank) << rank.error().message;
  worker->Put(worker->SlotOf(0), 11, Filled(1));
  worker->Put(worker->SlotOf(1), 12, Filled(2));
  std::vector<uint8_t> out(kPayload);
  ASSERT_TRUE(rank->Take(0, 11, out));
  EXPECT_EQ(out, Filled(1));
  ASSERT_TRUE(rank->Take(1, 12, out));
  EXPECT_EQ(out, Filled(2));
}

TEST(Ring, PositionsGoRound) {
  const Result<Ring> ring = Ring::Create(3, kPayload);
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->SlotOf(0), 0);
  EXPECT_EQ(ring->SlotOf(2), 2);
  EXPECT_EQ(ring->SlotOf(3), 0);
}

TEST(Ring, EveryChangedByteOfASlotIsDetected) {
  Result<Ring> ring = Ring::Create(1, kPayload);
  ASSERT_TRUE(ring);
  ring->Put(0, 11, Filled(7));
  // Checksum, number and payload; what follows is padding.
  constexpr size_t kCovered = 8 + 8 + kPayload;
  auto* bytes = static_cast<uint8_t*>(
      ::mmap(nullptr, kCovered, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd(), 0));
  ASSERT_NE(bytes, MAP_FAILED);
  std::vector<uint8_t> out(kPayload);
  for (size_t i = 0; i < kCovered; ++i) {
    bytes[i] ^= 1;
    const Status taken = ring->Take(0, 11, out);
    ASSERT_FALSE(taken) << "byte " << i;
    EXPECT_THAT(taken.error().message, HasSubstr("checksum"));
    bytes[i] ^= 1;
  }
  EXPECT_TRUE(ring->Take(0, 11, out));
  ::munmap(bytes, kCovered);
}

TEST(Ring, AnotherBatchThanExpectedIsDetected) {
  Result<Ring> ring = Ring::Create(1, kPayload);
  ASSERT_TRUE(ring);
  ring->Put(0, 11, Filled(7));
  std::vector<uint8_t> out(kPayload);
  const Status taken = ring->Take(0, 12, out);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, AllOf(HasSubstr("batch 11"), HasSubstr("expected 12")));
}

TEST(Ring, AnEmptySlotIsNoBatch) {
  const Result<Ring> ring = Ring::Create(1, kPayload);
  ASSERT_TRUE(ring);
  std::vector<uint8_t> out(kPayload);
  EXPECT_FALSE(ring->Take(0, 0, out));
}

TEST(Ring, MemoryOfAnotherSizeIsRefused) {
  const Result<Ring> ring = Ring::Create(1, kPayload);
  ASSERT_TRUE(ring);
  const Result<Ring> other = Ring::Map(UniqueFd(::dup(ring->fd())), 2, kPayload);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("bytes, expected"));
}

TEST(Ring, CannotBeShrunkByThePeer) {
  const Result<Ring> ring = Ring::Create(1, kPayload);
  ASSERT_TRUE(ring);
  EXPECT_EQ(::ftruncate(ring->fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
}

}  // namespace
}  // namespace shakedown
