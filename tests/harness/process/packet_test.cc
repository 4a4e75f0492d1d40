#include "harness/process/packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

namespace shakedown {
namespace {

std::pair<UniqueFd, UniqueFd> Ends() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

TEST(Packet, BytesAndDescriptorsArriveTogether) {
  const auto [a, b] = Ends();
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const UniqueFd reader(pipe[0]);
  UniqueFd writer(pipe[1]);
  ASSERT_TRUE(SendPacket(a.get(), std::string_view("a\0b", 3), {writer.get()}));
  writer.Reset();
  const auto packet = ReceivePacket(b.get());
  ASSERT_TRUE(packet && *packet);
  EXPECT_EQ((*packet)->bytes, std::string("a\0b", 3));
  ASSERT_EQ((*packet)->descriptors.size(), 1u);
  ASSERT_EQ(::write((*packet)->descriptors[0].get(), "x", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(reader.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(Packet, AnEndThatIsGoneIsSaid) {
  auto [a, b] = Ends();
  b.Reset();
  const Status sent = SendPacket(a.get(), "hello");  // would end us if it raised SIGPIPE
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, EPIPE);
  const auto packet = ReceivePacket(a.get());
  ASSERT_TRUE(packet);
  EXPECT_FALSE(*packet);
}

TEST(Packet, OneThatIsTooLongIsRefused) {
  const auto [a, b] = Ends();
  const std::string bytes(kMaxPacketBytes + 1, 'x');
  ASSERT_EQ(::send(a.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  const auto packet = ReceivePacket(b.get());
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().code, EBADMSG);
}

}  // namespace
}  // namespace shakedown
