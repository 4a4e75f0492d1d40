#include "harness/run/event_loop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "harness/base/unique_fd.h"

namespace shakedown {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  UniqueFd read, write;
};

TEST(EventLoop, CallsAgainWhileADescriptorIsReadable) {
  EventLoop loop;
  Pipe pipe;
  ASSERT_EQ(::write(pipe.write.get(), "abc", 3), 3);
  std::string seen;
  loop.WatchReadable(pipe.read.get(), [&] {
    char c;
    ASSERT_EQ(::read(pipe.read.get(), &c, 1), 1);
    seen += c;
    if (seen.size() == 3) loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(seen, "abc");
}

TEST(EventLoop, AnUnwatchedDescriptorStaysOpenAndIsNotCalledAnyMore) {
  EventLoop loop;
  Pipe pipe;
  int calls = 0;
  loop.WatchReadable(pipe.read.get(), [&] {
    ++calls;
    loop.Unwatch(pipe.read.get());
    loop.Post([&] { loop.Stop(); });
  });
  ASSERT_EQ(::write(pipe.write.get(), "ab", 2), 2);
  loop.Run();
  EXPECT_EQ(calls, 1);
  char c;
  EXPECT_EQ(::read(pipe.read.get(), &c, 1), 1);
}

TEST(EventLoop, EndOfFileIsReadable) {
  EventLoop loop;
  Pipe pipe;
  pipe.write.Reset();
  bool called = false;
  loop.WatchReadable(pipe.read.get(), [&] {
    called = true;
    loop.Stop();
  });
  loop.Run();
  EXPECT_TRUE(called);
}

TEST(EventLoop, TimersRunInOrderAndACancelledOneDoesNot) {
  EventLoop loop;
  std::vector<int> order;
  loop.After(milliseconds(20), [&] {
    order.push_back(2);
    loop.Stop();
  });
  loop.After(milliseconds(1), [&] { order.push_back(1); });
  loop.Cancel(loop.After(milliseconds(5), [&] { order.push_back(9); }));
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(EventLoop, APeriodicTimerMayCancelItself) {
  EventLoop loop;
  int calls = 0;
  EventLoop::TimerId id = 0;
  id = loop.Every(milliseconds(1), [&](Nanoseconds) {
    if (++calls == 3) {
      loop.Cancel(id);
      loop.After(milliseconds(10), [&] { loop.Stop(); });
    }
  });
  loop.Run();
  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, MissedPeriodsAreNotMadeUpFor) {
  EventLoop loop;
  int calls = 0;
  loop.Every(milliseconds(2), [&](Nanoseconds late) {
    if (++calls == 1) {
      // Stands for an overloaded machine: the callback itself takes five periods.
      const MonoTime until = MonoNow() + milliseconds(10);
      while (MonoNow() < until) {
      }
    } else {
      EXPECT_LT(late, milliseconds(8));
      loop.Stop();
    }
  });
  loop.Run();
  EXPECT_EQ(calls, 2);
}

TEST(EventLoop, PostFromAnotherThreadWakesIt) {
  EventLoop loop;
  std::thread other([&] { loop.Post([&] { loop.Stop(); }); });
  loop.Run();
  other.join();
}

TEST(EventLoop, SignalsArriveAsCallbacks) {
  EventLoop loop;
  int received = 0;
  loop.OnSignals({SIGUSR1}, [&](int signal) {
    received = signal;
    loop.Stop();
  });
  ASSERT_EQ(::raise(SIGUSR1), 0);
  loop.Run();
  EXPECT_EQ(received, SIGUSR1);
}

}  // namespace
}  // namespace shakedown
