// A stand-in for the controller's end of the control socket: it meets processes, fills their pages
// and holds them, one blocking call at a time. It checks as little as the tests need, so that they
// can also send what a controller never would.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/base/unique_fd.h"
#include "harness/process/identity.h"
#include "harness/wire/control.h"
#include "harness/wire/progress_page.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {

struct ArmFields {
  Point point = Point::kNone;
  uint32_t step = 1;
  uint32_t occurrence = 1;
  uint32_t flags = kArmHold;
  ArmAction action = ArmAction::kNone;
  int64_t argument = 0;
  uint32_t id = 1;
};
// As the controller does it: the arm first, then the bit.
void PutArm(ProgressPage* page, size_t index, const ArmFields& fields);

// A page as a process gets it; `seals` and `bytes` are wrong in tests only. Empty when it cannot be
// made.
UniqueFd MakePageFd(int seals, size_t bytes = kPageBytes);

// One process that has said hello.
class MetProcess {
 public:
  ~MetProcess();

  const HelloMessage& hello() const { return hello_; }
  const ProcessIdentity& identity() const { return identity_; }
  ProgressPage* page() const { return page_; }
  uint64_t lane(Lane lane) const {
    return page_->observed.lanes[static_cast<size_t>(lane)].load(std::memory_order_relaxed);
  }

  // The next packet must be of this kind, and comes within test_support::kPatience.
  Result<HeldMessage> AwaitHeld();
  Result<FiredMessage> AwaitFired();
  Result<JoinedMessage> AwaitJoined();
  // Whether a packet (or the end) is there within `patience`.
  bool SomethingArrives(Nanoseconds patience) const;
  Status Release(uint32_t arm_index, bool act);
  Status SendRaw(const void* bytes, size_t size);
  void HangUp() { socket_.Reset(); }

 private:
  friend class ControlDouble;
  MetProcess() = default;
  Result<AnyMessage> Receive(MessageKind kind, size_t bytes);

  HelloMessage hello_{};
  ProcessIdentity identity_;
  UniqueFd socket_;
  ProgressPage* page_ = nullptr;
};

class ControlDouble {
 public:
  static Result<std::unique_ptr<ControlDouble>> Listen();

  // For SHAKEDOWN_CONTROL_SOCKET.
  const std::string& path() const { return path_; }

  // Accepts the next process, lets `arm` fill its page, and welcomes it.
  Result<std::unique_ptr<MetProcess>> Meet(
      const std::function<void(const HelloMessage&, ProgressPage*)>& arm = nullptr);
  // Accepts, reads the hello and answers with these bytes and this descriptor (-1: none).
  Result<std::unique_ptr<MetProcess>> MeetWith(const WelcomeMessage& welcome, size_t bytes, int fd);
  // Accepts and reads the hello, and never answers.
  Result<std::unique_ptr<MetProcess>> MeetInSilence();

 private:
  Result<std::unique_ptr<MetProcess>> Accept();

  TempDir directory_;
  std::string path_;
  UniqueFd listener_;
};

}  // namespace shakedown::test_support
