// The rank's side of the launcher's watchdog.
#include "trainer/observe/heartbeat_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/unique_fd.h"

namespace shakedown {
namespace {

UniqueFd Memory(off_t bytes) {
  UniqueFd fd(::memfd_create("heartbeat", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), bytes), 0);
  return fd;
}

TEST(HeartbeatWriter, BeatsAreSeenThroughTheMemory) {
  UniqueFd fd = Memory(sizeof(Heartbeat));
  void* mapped = ::mmap(nullptr, sizeof(Heartbeat), PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto* seen = static_cast<const Heartbeat*>(mapped);
  const int number = fd.get();
  auto writer = HeartbeatWriter::Open(fd.Release());
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(::fcntl(number, F_GETFD), -1) << "the descriptor would leak into data workers";
  EXPECT_EQ(seen->ready.load(), 0u);
  writer->Ready();
  writer->StepCompleted(12);
  EXPECT_EQ(seen->ready.load(), 1u);
  EXPECT_EQ(seen->step.load(), 12u);
  ::munmap(mapped, sizeof(Heartbeat));
}

TEST(HeartbeatWriter, WithoutADescriptorBeatsGoNowhere) {
  auto writer = HeartbeatWriter::Open(std::nullopt);
  ASSERT_TRUE(writer);
  writer->Ready();
  writer->StepCompleted(1);
}

TEST(HeartbeatWriter, AWrongDescriptorIsAnError) {
  EXPECT_FALSE(HeartbeatWriter::Open(999));
  EXPECT_FALSE(HeartbeatWriter::Open(Memory(4).Release()));
}

}  // namespace
}  // namespace shakedown
