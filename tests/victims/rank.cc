// A rank that does what the command line says, so that a test decides how each rank of each attempt
// ends.
//   victim-rank ATTEMPT.RANK=VERB,VERB,... ...
// A rank without a line of its own does "ready,step:1,exit:0". Verbs:
//   ready          tells the launcher that it is ready
//   step:N         tells it that step N is complete
//   exit:N raise:N end with this status, or by this signal
//   pause          does nothing for ever; SIGTERM is ignored
//   watch:R        waits until rank R has ended, as a peer notices it
//   term:N         waits for SIGTERM, then exits N
//   announce:PATH  opens the FIFO at PATH and closes it: somebody who reads it knows where we are
//   print:TEXT     a line on stdout
//   print-session  a line that says whether the rank is the launcher's child and leads a session
//   print-store, print-parts   a line with the store's path and whether it exists; the parts
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/wire/environment.h"
#include "harness/wire/heartbeat.h"
#include "trainer/fork_server/server.h"

namespace shakedown {
namespace {

int NumberFrom(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) std::exit(90);
  return std::atoi(text);
}

struct Verb {
  std::string name;
  std::string argument;
};

std::vector<Verb> ParseVerbs(const std::string& text) {
  std::vector<Verb> verbs;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string verb = text.substr(begin, end - begin);
    const size_t colon = std::min(verb.find(':'), verb.size());
    verbs.push_back({verb.substr(0, colon), verb.substr(std::min(colon + 1, verb.size()))});
    begin = end + 1;
  }
  return verbs;
}

// Verbs of every rank of this attempt.
std::map<int, std::vector<Verb>> ParseScript(int argc, char** argv, int attempt, int ranks) {
  std::map<int, std::vector<Verb>> script;
  for (int r = 0; r < ranks; ++r) script[r] = ParseVerbs("ready,step:1,exit:0");
  for (int i = 1; i < argc; ++i) {
    const std::string line = argv[i];
    const size_t equals = line.find('=');
    for (int r = 0; r < ranks; ++r) {
      if (line.substr(0, equals) == std::to_string(attempt) + "." + std::to_string(r)) {
        script[r] = ParseVerbs(line.substr(equals + 1));
      }
    }
  }
  return script;
}

// The line between a watched rank and its watcher is a FIFO: the watcher reads end of file when the
// watched one ends. Opening waits for the other side; all ranks open in the same order.
std::map<int, int> ConnectWatchers(const std::map<int, std::vector<Verb>>& script, int self) {
  std::map<int, int> watched;
  std::vector<std::pair<int, int>> lines;  // watched, watcher
  for (const auto& [rank, verbs] : script) {
    for (const Verb& verb : verbs) {
      if (verb.name == "watch") lines.emplace_back(std::stoi(verb.argument), rank);
    }
  }
  std::sort(lines.begin(), lines.end());
  for (const auto& [from, to] : lines) {
    if (from != self && to != self) continue;
    const std::string path = std::string(std::getenv(env::kStoreFile)) + "." +
                             std::to_string(from) + "." + std::to_string(to);
    ::mkfifo(path.c_str(), 0600);
    const int fd = ::open(path.c_str(), (from == self ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) std::exit(91);
    if (to == self) watched[from] = fd;
  }
  return watched;
}

Heartbeat* MapHeartbeat() {
  void* page = ::mmap(nullptr, sizeof(Heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED,
                      NumberFrom(env::kHeartbeatFd), 0);
  if (page == MAP_FAILED) std::exit(92);
  return static_cast<Heartbeat*>(page);
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void PrintStore() {
  const std::string path = std::getenv(env::kStoreFile);
  Say("store " + path + (::access(path.c_str(), F_OK) == 0 ? " exists" : " is new"));
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) std::exit(93);
}

int WaitForTerm() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  int signal = 0;
  return ::sigwait(&set, &signal);
}

void Do(const Verb& verb, Heartbeat* heartbeat, const std::map<int, int>& watched) {
  const auto number = [&] { return std::atoi(verb.argument.c_str()); };
  if (verb.name == "ready") {
    heartbeat->ready.store(1);
  } else if (verb.name == "step") {
    heartbeat->step.store(static_cast<uint64_t>(number()));
  } else if (verb.name == "exit") {
    std::exit(number());
  } else if (verb.name == "raise") {
    ::raise(number());
  } else if (verb.name == "pause") {
    while (true) ::pause();  // SIGTERM is blocked
  } else if (verb.name == "watch") {
    char byte = 0;
    while (::read(watched.at(number()), &byte, 1) > 0) {
    }
  } else if (verb.name == "term") {
    if (WaitForTerm() == 0) std::exit(number());
  } else if (verb.name == "announce") {
    const int fd = ::open(verb.argument.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) std::exit(94);
    ::close(fd);
  } else if (verb.name == "print") {
    Say(verb.argument);
  } else if (verb.name == "print-session") {
    Say(std::string(::getsid(0) == ::getpid() ? "leads" : "follows") + ", parent " +
        std::to_string(::getppid()));
  } else if (verb.name == "print-store") {
    PrintStore();
  } else if (verb.name == "print-parts") {
    Say(std::string("parts ") + std::getenv(env::kMicroBatchParts));
  } else {
    std::exit(95);
  }
}

}  // namespace
}  // namespace shakedown

int main(int argc, char** argv) {
  using namespace shakedown;
  (void)ServeForks();
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &term, nullptr);
  const int self = NumberFrom(env::kRank);
  const auto script =
      ParseScript(argc, argv, NumberFrom(env::kRestartCount), NumberFrom(env::kWorldSize));
  Heartbeat* heartbeat = MapHeartbeat();
  const std::map<int, int> watched = ConnectWatchers(script, self);
  for (const Verb& verb : script.at(self)) Do(verb, heartbeat, watched);
  return 96;  // a script must say how the rank ends
}
