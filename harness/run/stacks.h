// Native stacks of processes that do not move, taken by eu-stack (elfutils) in a thread of its own:
// the tool stops its target for a moment and may take half a second, and a hold must not wait for
// that.
#pragma once

#include <functional>
#include <mutex>
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
  StackCollector(EventLoop& loop, Handler collected)
      : loop_(loop), collected_(std::move(collected)) {}
  ~StackCollector() { Wait(); }

  void Collect(const ProcessIdentity& process, int attempt, int rank);
  // Waits for what is under way, each bounded by the tool's deadline, and hands it over before it
  // returns. A target that has ended is not waited for longer than the tool needs to see that.
  void Wait();

 private:
  struct Taken {
    int attempt;
    int rank;
    std::string text;
  };
  void HandOver();

  EventLoop& loop_;
  Handler collected_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::vector<Taken> taken_;  // guarded by mutex_
};

}  // namespace shakedown
