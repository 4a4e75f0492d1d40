// Native stacks of processes that do not move, taken by eu-stack (elfutils) in a thread of its own:
// the tool stops its target for a moment and may take half a second, and a hold must not wait for
// that.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "harness/process/identity.h"
#include "harness/run/event_loop.h"

namespace shakedown {

class StackCollector {
 public:
  // `collected(attempt, rank, text)` is called on the loop's thread; text says why when there is no
  // stack.
  using Handler = std::function<void(int attempt, int rank, const std::string& text)>;
  StackCollector(EventLoop& loop, Handler collected) : loop_(loop), collected_(std::move(collected)) {}
  ~StackCollector() { Wait(); }

  void Collect(const ProcessIdentity& process, int attempt, int rank);
  // Waits for the threads, each of which is bounded by the tool's deadline.
  void Wait();

 private:
  EventLoop& loop_;
  Handler collected_;
  std::vector<std::thread> threads_;
};

}  // namespace shakedown
