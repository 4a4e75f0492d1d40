#include "harness/run/event_loop.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>

namespace shakedown {

namespace asio = boost::asio;

struct EventLoop::Impl {
  struct Watch {
    Watch(asio::io_context& io, int fd, Callback callback)
        : descriptor(io, fd), ready(std::move(callback)) {}
    asio::posix::stream_descriptor descriptor;
    Callback ready;
    bool active = true;
  };
  struct Timer {
    explicit Timer(asio::io_context& io) : timer(io) {}
    asio::steady_timer timer;
    std::function<void(Nanoseconds)> expired;
    Nanoseconds period{0};
    bool active = true;
  };

  void Arm(const std::shared_ptr<Watch>& watch) {
    watch->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [this, watch](const boost::system::error_code& error) {
                                   if (!watch->active || error) return;
                                   watch->ready();
                                   if (watch->active) Arm(watch);
                                 });
  }

  void Arm(TimerId id, const std::shared_ptr<Timer>& timer) {
    timer->timer.async_wait([this, id, timer](const boost::system::error_code& error) {
      if (!timer->active || error) return;
      const auto late = std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now() -
                                                                timer->timer.expiry());
      if (timer->period.count() == 0) {
        timer->active = false;
        timers.erase(id);
        timer->expired(late);
        return;
      }
      timer->expired(late);
      if (!timer->active) return;
      const auto now = std::chrono::steady_clock::now();
      auto next = timer->timer.expiry() + timer->period;
      if (next < now) next = now + timer->period;
      timer->timer.expires_at(next);
      Arm(id, timer);
    });
  }

  asio::io_context io{1};
  std::map<int, std::shared_ptr<Watch>> watches;
  std::map<TimerId, std::shared_ptr<Timer>> timers;
  TimerId next_timer = 1;
  std::unique_ptr<asio::signal_set> signals;
  std::function<void(int)> on_signal;

  void ArmSignals() {
    signals->async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      on_signal(signal);
      ArmSignals();
    });
  }
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}

EventLoop::~EventLoop() {
  // The descriptors are the callers': Asio must not close them.
  for (auto& [fd, watch] : impl_->watches) watch->descriptor.release();
}

void EventLoop::WatchReadable(int fd, Callback ready) {
  Unwatch(fd);
  auto watch = std::make_shared<Impl::Watch>(impl_->io, fd, std::move(ready));
  impl_->watches[fd] = watch;
  impl_->Arm(watch);
}

void EventLoop::Unwatch(int fd) {
  const auto it = impl_->watches.find(fd);
  if (it == impl_->watches.end()) return;
  it->second->active = false;
  it->second->descriptor.release();
  impl_->watches.erase(it);
}

EventLoop::TimerId EventLoop::After(Nanoseconds delay, Callback expired) {
  auto timer = std::make_shared<Impl::Timer>(impl_->io);
  timer->expired = [call = std::move(expired)](Nanoseconds) { call(); };
  timer->timer.expires_after(delay);
  const TimerId id = impl_->next_timer++;
  impl_->timers[id] = timer;
  impl_->Arm(id, timer);
  return id;
}

EventLoop::TimerId EventLoop::Every(Nanoseconds period,
                                    std::function<void(Nanoseconds late)> expired) {
  auto timer = std::make_shared<Impl::Timer>(impl_->io);
  timer->expired = std::move(expired);
  timer->period = period;
  timer->timer.expires_after(period);
  const TimerId id = impl_->next_timer++;
  impl_->timers[id] = timer;
  impl_->Arm(id, timer);
  return id;
}

void EventLoop::Cancel(TimerId id) {
  const auto it = impl_->timers.find(id);
  if (it == impl_->timers.end()) return;
  it->second->active = false;
  it->second->timer.cancel();
  impl_->timers.erase(it);
}

void EventLoop::OnSignals(std::initializer_list<int> signals,
                          std::function<void(int signal)> received) {
  impl_->signals = std::make_unique<asio::signal_set>(impl_->io);
  for (const int signal : signals) impl_->signals->add(signal);
  impl_->on_signal = std::move(received);
  impl_->ArmSignals();
}

void EventLoop::Post(Callback call) { asio::post(impl_->io, std::move(call)); }

void EventLoop::Run() {
  impl_->io.restart();
  const auto work = asio::make_work_guard(impl_->io);
  impl_->io.run();
}

void EventLoop::Stop() { impl_->io.stop(); }

}  // namespace shakedown
