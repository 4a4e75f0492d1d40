// The controller's end of the control socket (wire/control.h). One connection per process of the
// job. Everything that comes in is untrusted: a packet of the wrong size, kind or order closes that
// connection and nothing else; nothing here blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/run/event_loop.h"
#include "harness/run/process_table.h"
#include "harness/wire/control.h"

namespace shakedown {

class ControlServer {
 public:
  struct Handlers {
    // Whether this pid (of our user) may belong to the run.
    std::function<bool(pid_t)> admit;
    // The page exists and has not been handed over yet: arm it now.
    std::function<void(TrackedProcess&)> hello;
    std::function<void(TrackedProcess&, const JoinedMessage&)> joined;
    std::function<void(TrackedProcess&, const HeldMessage&)> held;
    std::function<void(TrackedProcess&, const FiredMessage&)> fired;
  };

  // Listens on `path` (mode 0600).
  static Result<std::unique_ptr<ControlServer>> Listen(const std::string& path, EventLoop& loop,
                                                       ProcessTable& processes, Handlers handlers);
  ~ControlServer();

  // Lets a held process go on; `act`: run the arm's in-process action. A process that is gone is
  // ignored.
  void Release(TrackedProcess& process, uint32_t arm_index, bool act);

  // Ends the connections of all processes, which frees every hold.
  void CloseAll();

 private:
  ControlServer(EventLoop& loop, ProcessTable& processes, Handlers handlers)
      : loop_(loop), processes_(processes), handlers_(std::move(handlers)) {}
  void OnAccept();
  void OnGreeting(int fd);
  void OnPacket(TrackedProcess& process);
  void Close(TrackedProcess& process);
  bool Dispatch(TrackedProcess& process, const AnyMessage& message, size_t bytes);

  EventLoop& loop_;
  ProcessTable& processes_;
  Handlers handlers_;
  UniqueFd listener_;
  std::string path_;
  std::vector<UniqueFd> greeting_;  // connected, hello not seen yet
};

}  // namespace shakedown
