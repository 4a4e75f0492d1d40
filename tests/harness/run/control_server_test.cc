// The server against clients that behave and clients that do not. The clients are sockets of this
// process: the kernel gives them our pid.
#include "harness/run/control_server.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

namespace shakedown {
namespace {

namespace fs = std::filesystem;

class ControlServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "shakedown-test-XXXXXX").native();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    auto server = ControlServer::Listen(
        (folder_ / "control").native(), loop_, processes_,
        {[this](pid_t) { return admit_; }, [this](TrackedProcess& p) { Note("hello", p); },
         [this](TrackedProcess& p, const JoinedMessage& m) {
           p.rank = m.rank;
           Note("joined", p);
         },
         [this](TrackedProcess& p, const HeldMessage&) { Note("held", p); },
         [this](TrackedProcess& p, const FiredMessage&) { Note("fired", p); }});
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void TearDown() override {
    server_.reset();
    fs::remove_all(folder_);
  }

  void Note(const std::string& what, TrackedProcess& p) {
    seen_.push_back(what + " " + std::to_string(p.rank));
    last_ = &p;
  }

  UniqueFd Connect() {
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder_ / "control").c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  template <typename T>
  void Send(const UniqueFd& fd, const T& message) {
    ASSERT_EQ(::send(fd.get(), &message, sizeof message, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof message));
  }
  static HelloMessage Hello(int rank) {
    HelloMessage hello{};
    hello.header = {kControlMagic, MessageKind::kHello};
    hello.pid = 1;  // a lie: the kernel knows better
    hello.rank_hint = rank;
    hello.worker_hint = -1;
    return hello;
  }
  // Runs the loop until the client's end is readable, then returns what came: a packet's size, 0 at
  // the end.
  ssize_t Receive(const UniqueFd& fd, AnyMessage* message, UniqueFd* passed = nullptr) {
    loop_.WatchReadable(fd.get(), [&] { loop_.Stop(); });
    loop_.Run();
    loop_.Unwatch(fd.get());
    iovec data{message, sizeof *message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(fd.get(), &header, MSG_CMSG_CLOEXEC);
    if (n > 0 && passed != nullptr) {
      if (cmsghdr* c = CMSG_FIRSTHDR(&header)) {
        int fd_in = -1;
        std::memcpy(&fd_in, CMSG_DATA(c), sizeof fd_in);
        passed->Reset(fd_in);
      }
    }
    return n;
  }

  fs::path folder_;
  EventLoop loop_;
  ProcessTable processes_{loop_, {[](TrackedProcess&) {}, [](TrackedProcess&) {}}};
  std::unique_ptr<ControlServer> server_;
  bool admit_ = true;
  std::vector<std::string> seen_;
  TrackedProcess* last_ = nullptr;
};

TEST_F(ControlServerTest, AHelloIsAnsweredWithASealedPage) {
  const UniqueFd client = Connect();
  Send(client, Hello(2));
  AnyMessage answer{};
  UniqueFd page;
  ASSERT_EQ(Receive(client, &answer, &page), static_cast<ssize_t>(sizeof(WelcomeMessage)));
  EXPECT_EQ(answer.welcome.accepted, 1u);
  ASSERT_TRUE(page.valid());
  EXPECT_EQ(seen_, (std::vector<std::string>{"hello 2"}));
  EXPECT_EQ(last_->identity.pid, ::getpid()) << "the pid is the kernel's, not the packet's";
  EXPECT_NE(::ftruncate(page.get(), 0), 0) << "a rank must not be able to shrink the page";
  EXPECT_NE(::ftruncate(page.get(), 1 << 20), 0);
}

TEST_F(ControlServerTest, AProcessOfAnotherRunGetsNothing) {
  admit_ = false;
  const UniqueFd client = Connect();
  Send(client, Hello(0));
  AnyMessage answer{};
  UniqueFd page;
  ASSERT_GT(Receive(client, &answer, &page), 0);
  EXPECT_EQ(answer.welcome.accepted, 0u);
  EXPECT_FALSE(page.valid());
  EXPECT_TRUE(seen_.empty());
}

TEST_F(ControlServerTest, AReleaseReachesTheProcessThatHolds) {
  const UniqueFd client = Connect();
  Send(client, Hello(1));
  AnyMessage message{};
  ASSERT_GT(Receive(client, &message), 0);
  HeldMessage held{};
  held.header = {kControlMagic, MessageKind::kHeld};
  held.arm_index = 3;
  Send(client, held);
  while (seen_.size() < 2) {
    loop_.After(std::chrono::milliseconds(1), [this] { loop_.Stop(); });
    loop_.Run();
  }
  EXPECT_EQ(seen_.back(), "held 1");
  server_->Release(*last_, 3, true);
  ASSERT_EQ(Receive(client, &message), static_cast<ssize_t>(sizeof(ReleaseMessage)));
  EXPECT_EQ(message.release.arm_index, 3u);
  EXPECT_EQ(message.release.act, 1u);
}

TEST_F(ControlServerTest, WrongSizesKindsAndOrdersCloseTheConnection) {
  const auto closes = [&](auto message, size_t bytes, bool after_hello) {
    const UniqueFd client = Connect();
    AnyMessage answer{};
    if (after_hello) {
      Send(client, Hello(0));
      ASSERT_GT(Receive(client, &answer), 0);
    }
    ASSERT_GE(::send(client.get(), &message, bytes, MSG_NOSIGNAL), 0);
    EXPECT_EQ(Receive(client, &answer), 0);
  };
  HelloMessage hello = Hello(0);
  closes(hello, sizeof hello - 1, false);
  hello.header.magic = 7;
  closes(hello, sizeof hello, false);
  JoinedMessage joined{{kControlMagic, MessageKind::kJoined}, 0, 3};
  closes(joined, sizeof joined, false);     // no hello before it
  closes(joined, sizeof joined - 4, true);  // half a message
  HeldMessage held{};
  held.header = {kControlMagic, MessageKind::kHeld};
  held.arm_index = kArms;  // no such arm
  closes(held, sizeof held, true);
  ReleaseMessage release{{kControlMagic, MessageKind::kRelease}, 0, 1};
  closes(release, sizeof release, true);  // ours to send
}

TEST_F(ControlServerTest, AFloodingProcessDoesNotStarveAnother) {
  const UniqueFd flooder = Connect();
  Send(flooder, Hello(0));
  AnyMessage answer{};
  ASSERT_GT(Receive(flooder, &answer), 0);
  const JoinedMessage joined{{kControlMagic, MessageKind::kJoined}, 0, 3};
  while (::send(flooder.get(), &joined, sizeof joined, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
  }
  const UniqueFd other = Connect();
  Send(other, Hello(1));
  ASSERT_GT(Receive(other, &answer), 0);
  EXPECT_EQ(answer.welcome.accepted, 1u);
}

TEST_F(ControlServerTest, ClosingAllFreesEveryHold) {
  const UniqueFd client = Connect();
  Send(client, Hello(1));
  AnyMessage message{};
  ASSERT_GT(Receive(client, &message), 0);
  server_->CloseAll();
  EXPECT_EQ(Receive(client, &message), 0);
}

TEST_F(ControlServerTest, APathThatIsTooLongForASocketIsSaid) {
  auto server = ControlServer::Listen(std::string(200, 'x'), loop_, processes_, {});
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("longer than a Unix socket"), std::string::npos);
}

}  // namespace
}  // namespace shakedown
