#include "harness/reaper/protocol.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shakedown {
namespace {

class ReaperProtocol : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    near_.Reset(ends[0]);
    far_.Reset(ends[1]);
  }
  UniqueFd near_;
  UniqueFd far_;
};

TEST_F(ReaperProtocol, DescriptorsArriveBesideTheirMessage) {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(SendReaperMessage(near_.get(), {{"id", 1}}, {null.get(), zero.get()}));
  ASSERT_TRUE(SendReaperMessage(near_.get(), {{"id", 2}}));
  const auto first = ReceiveReaperMessage(far_.get());
  const auto second = ReceiveReaperMessage(far_.get());
  ASSERT_TRUE(first && *first && second && *second);
  EXPECT_EQ(IntField((*first)->body, "id"), 1);
  ASSERT_EQ((*first)->descriptors.size(), 2u);
  struct stat sent {};
  struct stat received {};
  ASSERT_EQ(::fstat(zero.get(), &sent), 0);
  ASSERT_EQ(::fstat((*first)->descriptors[1].get(), &received), 0);
  EXPECT_EQ(sent.st_rdev, received.st_rdev);
  EXPECT_NE(::fcntl((*first)->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE((*second)->descriptors.empty());
}

TEST_F(ReaperProtocol, TextLongerThanAPacketArrives) {
  const std::string text(3 << 20, 'x');
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(SendReaperMessage(near_.get(), {{"text", text}}, {null.get()}));
  const auto message = ReceiveReaperMessage(far_.get());
  ASSERT_TRUE(message && *message);
  EXPECT_EQ(StringField((*message)->body, "text"), text);
  EXPECT_EQ((*message)->descriptors.size(), 1u);
}

TEST_F(ReaperProtocol, EndOfTheConnectionIsNoMessage) {
  near_.Reset();
  const auto message = ReceiveReaperMessage(far_.get());
  ASSERT_TRUE(message);
  EXPECT_FALSE(message->has_value());
  EXPECT_EQ(SendReaperMessage(far_.get(), {{"id", 1}}).error().code, EPIPE);
}

TEST_F(ReaperProtocol, NothingThereAndNoRoomAreEagain) {
  EXPECT_EQ(ReceiveReaperMessage(far_.get()).error().code, EAGAIN);
  Status sent;
  for (int i = 0; i < 1'000'000 && sent; ++i) sent = SendReaperMessage(near_.get(), {{"id", i}});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, EAGAIN);
}

TEST_F(ReaperProtocol, TextThatIsNotJsonIsAnError) {
  ASSERT_EQ(::write(near_.get(), "{\"id\":", 6), 6);
  EXPECT_FALSE(ReceiveReaperMessage(far_.get()));
  ASSERT_EQ(::write(near_.get(), "text in descriptor", 18), 18);
  EXPECT_EQ(ReceiveReaperMessage(far_.get()).error().code, EBADMSG);
}

TEST(ReaperBytes, EveryByteSurvivesTheWayThroughJson) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const Result<Json> parsed = ParseJson(DumpJson(Json(BytesToJson(bytes))));
  ASSERT_TRUE(parsed);
  const Result<std::string> back = BytesFromJson(parsed->get<std::string>());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, bytes);
}

TEST(ReaperBytes, CodePointsThatAreNoByteAreRefused) {
  EXPECT_FALSE(BytesFromJson("\xC4\x80"));      // U+0100
  EXPECT_FALSE(BytesFromJson("\xE2\x82\xAC"));  // U+20AC
  EXPECT_FALSE(BytesFromJson("\xC3"));          // cut
}

}  // namespace
}  // namespace shakedown
