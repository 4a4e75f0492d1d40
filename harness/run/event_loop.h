// The controller's one thread of control: descriptors, timers and signals, as callbacks that run
// one after another inside Run(). The only code that knows Boost.Asio stands in event_loop.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>

#include "harness/base/time.h"

namespace shakedown {

class EventLoop {
 public:
  using Callback = std::function<void()>;
  using TimerId = uint64_t;

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `ready` again and again while `fd` is readable (or at its end). The descriptor stays the
  // caller's and must be unwatched before it is closed. Both may be called from a callback.
  void WatchReadable(int fd, Callback ready);
  void Unwatch(int fd);

  TimerId After(Nanoseconds delay, Callback expired);
  // Periods that were missed (an overloaded machine) are not made up for. `expired` receives how
  // much later than planned it is called.
  TimerId Every(Nanoseconds period, std::function<void(Nanoseconds late)> expired);
  void Cancel(TimerId id);  // an id that is unknown or has expired is ignored

  // From the call on these signals no longer have their default action.
  void OnSignals(std::initializer_list<int> signals, std::function<void(int signal)> received);

  // From any thread.
  void Post(Callback call);

  // Runs callbacks until Stop(). May be called again.
  void Run();
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shakedown
