#include "harness/run/stacks.h"

#include "harness/process/child.h"

namespace shakedown {
namespace {

// eu-stack needs 0.1 to 0.5 s for a rank; one that hangs (its target in state D) is given up.
constexpr auto kDeadline = std::chrono::seconds(5);

std::string TakeStack(const ProcessIdentity& process) {
  // The pid may have passed to somebody else since it was noted.
  if (Result<UniqueFd> alive = OpenPidfd(process); !alive) {
    return "no stack: the process has ended\n";
  }
  Result<HelperResult> result =
      RunHelper({.argv = {"eu-stack", "-p", std::to_string(process.pid)}, .deadline = kDeadline});
  if (!result) return "no stack: " + result.error().message + "\n";
  std::string text = result->out;
  if (!result->status.ok()) {
    text += "eu-stack ended with " + result->status.ToString() + ": " + result->err + "\n";
  }
  return text;
}

}  // namespace

void StackCollector::Collect(const ProcessIdentity& process, int attempt, int rank) {
  threads_.emplace_back([this, process, attempt, rank] {
    std::string text = TakeStack(process);
    {
      const std::lock_guard lock(mutex_);
      taken_.push_back({attempt, rank, std::move(text)});
    }
    loop_.Post([this] { HandOver(); });
  });
}

void StackCollector::HandOver() {
  std::vector<Taken> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(taken_);
  }
  for (const Taken& stack : taken) collected_(stack.attempt, stack.rank, stack.text);
}

void StackCollector::Wait() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  HandOver();
}

}  // namespace shakedown
