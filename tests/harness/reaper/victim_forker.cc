// victim-forker KIND
// Processes that do not want to be ended. Ends by itself after kMaxForks forks or kMaxSeconds.
//   spread   each process forks on and lives: the subtree grows while it is being ended
//   hop      each process forks the next and exits: a chain that is never where it was seen
//   detach   each process forks on in a session of its own, its parents gone
// Prints "ready" when it is under way.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <new>

namespace {

constexpr int kMaxForks = 20'000;
constexpr int kMaxAlive = 200;
constexpr unsigned kMaxSeconds = 30;

std::atomic<int>* forks;

// Whether this process is the child of a successful fork.
bool ForkNext() {
  if (++*forks > kMaxForks) _exit(0);
  const pid_t pid = fork();
  if (pid < 0) _exit(1);
  if (pid > 0) return false;
  alarm(kMaxSeconds);
  return true;
}

void Pause(long ms) {
  const timespec time{0, ms * 1'000'000};
  nanosleep(&time, nullptr);
}

[[noreturn]] void Spread(bool detach) {
  while (true) {
    if (*forks < kMaxAlive && ForkNext() && detach) {
      setsid();
      if (!ForkNext()) _exit(0);
    }
    Pause(1);
  }
}

[[noreturn]] void Hop() {
  while (true) {
    if (!ForkNext()) _exit(0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* shared =
      mmap(nullptr, sizeof *forks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  forks = new (shared) std::atomic<int>(0);
  signal(SIGTERM, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  alarm(kMaxSeconds);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  if (std::strcmp(argv[1], "hop") == 0) Hop();
  Spread(std::strcmp(argv[1], "detach") == 0);
}
