// Does with the probe what it is told on stdin, a command a line, and answers on stdout, a line
// each.
//   pass POINT STEP            -> ACTION ARGUMENT of the verdict
//   threads N POINT STEP       -> "passed" when N threads have passed
//   elsewhere BYTES IN_USE     -> as allocate, on another thread
//   fork POINT STEP            -> "child LANE-COUNT" from a forked child that has passed, then its
//                                 exit status
//   fork_and_stay              -> "ok"; the forked child stays until stdin ends
//   allocate BYTES IN_USE      -> refused | granted
//   lane writer                -> ok        end_memory_phase, handle_term, join RANK SIZE,
//   step N, enter, enqueue, committed N, save_failed N ERRNO: likewise
//   terms                      -> how many SIGTERMs were handled
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "injectors/probe/probe.h"
#include "tests/victims/victim.h"

namespace {

using shakedown::FindPoint;
using shakedown::Lane;
using shakedown::Point;
namespace probe = shakedown::probe;

volatile std::sig_atomic_t terms = 0;

Point ReadPoint(std::istream& in) {
  std::string name;
  in >> name;
  return FindPoint(name).value_or(Point::kNone);
}

template <typename T>
T Read(std::istream& in) {
  T value{};
  in >> value;
  return value;
}

std::string Pass(std::istream& in) {
  const Point point = ReadPoint(in);
  const probe::Verdict verdict = probe::Pass(point, Read<uint32_t>(in));
  return std::to_string(static_cast<uint32_t>(verdict.action)) + " " +
         std::to_string(verdict.argument);
}

std::string Threads(std::istream& in) {
  const int count = Read<int>(in);
  const Point point = ReadPoint(in);
  const auto step = Read<uint32_t>(in);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([=] { probe::Pass(point, step); });
  for (std::thread& thread : threads) thread.join();
  return "passed";
}

std::string Fork(std::istream& in) {
  const Point point = ReadPoint(in);
  const auto step = Read<uint32_t>(in);
  const pid_t child = ::fork();
  if (child == 0) {
    probe::Pass(point, step);
    const uint64_t word = probe::internal::page->observed.lanes[0].load();
    std::cout << "child " << shakedown::Unpack(word).count << std::endl;
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

void ForkAndStay() {
  if (::fork() != 0) return;
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  ::_exit(0);
}

std::string Allocate(uint64_t bytes, uint64_t in_use) {
  return probe::RefuseAllocation(bytes, in_use) ? "refused" : "granted";
}

using Command = std::function<std::string(std::istream&)>;

Command Plain(std::function<void(std::istream&)> act) {
  return [act = std::move(act)](std::istream& in) {
    act(in);
    return std::string("ok");
  };
}

const std::map<std::string, Command>& Commands() {
  static const std::map<std::string, Command> kCommands = {
      {"pass", Pass},
      {"threads", Threads},
      {"fork", Fork},
      {"allocate",
       [](std::istream& in) {
         const auto bytes = Read<uint64_t>(in);
         return Allocate(bytes, Read<uint64_t>(in));
       }},
      {"elsewhere",
       [](std::istream& in) {
         const auto bytes = Read<uint64_t>(in);
         const auto in_use = Read<uint64_t>(in);
         std::string answer;
         std::thread([&] { answer = Allocate(bytes, in_use); }).join();
         return answer;
       }},
      {"fork_and_stay", Plain([](std::istream&) { ForkAndStay(); })},
      {"terms", [](std::istream&) { return std::to_string(terms); }},
      {"lane", Plain([](std::istream&) { probe::SetLane(Lane::kWriter); })},
      {"end_memory_phase", Plain([](std::istream&) { probe::EndMemoryPhase(); })},
      {"handle_term",
       Plain([](std::istream&) { std::signal(SIGTERM, [](int) { terms = terms + 1; }); })},
      {"join", Plain([](std::istream& in) {
         const int rank = Read<int>(in);
         probe::Joined(rank, Read<int>(in));
       })},
      {"step", Plain([](std::istream& in) { probe::StepEnded(Read<uint32_t>(in)); })},
      {"enter", Plain([](std::istream&) { probe::CollectiveEntered(); })},
      {"enqueue", Plain([](std::istream&) { probe::CollectiveEnqueued(); })},
      {"committed", Plain([](std::istream& in) { probe::Committed(Read<uint64_t>(in)); })},
      {"save_failed", Plain([](std::istream& in) {
         const auto step = Read<uint64_t>(in);
         probe::CheckpointFailed(step, Read<int>(in));
       })},
  };
  return kCommands;
}

}  // namespace

int main() {
  shakedown::victims::DieWithParent();
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    const auto command = Commands().find(Read<std::string>(in));
    std::cout << (command == Commands().end() ? "unknown command" : command->second(in))
              << std::endl;
  }
}
