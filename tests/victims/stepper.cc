// A rank: passes the points of a training step for ever, in step with its peers.
//   stepper COLLECTIVES RANKS IGNORED [--swallow-term]
// COLLECTIVES is a file that the ranks share: each counts in it the collectives that it contributed
// to, and waits there for the others.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>

#include "injectors/probe/probe.h"
#include "tests/victims/victim.h"

namespace {

using shakedown::Point;
namespace probe = shakedown::probe;

constexpr int kMaxRanks = 8;
using Counters = std::atomic<uint32_t>;

Counters* MapCounters(const char* path) {
  const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Counters) * kMaxRanks) != 0) return nullptr;
  void* memory =
      ::mmap(nullptr, sizeof(Counters) * kMaxRanks, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Counters*>(memory);
}

void Futex(Counters* word, int operation, uint32_t value) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation, value, nullptr, nullptr, 0);
}

// Hands over this rank's contribution; the call returns at once, as an asynchronous collective's.
void Contribute(Counters* counters, int rank, uint32_t number) {
  counters[rank].store(number);
  Futex(&counters[rank], FUTEX_WAKE, INT_MAX);
}

void AwaitPeers(Counters* counters, int ranks, uint32_t number) {
  for (int peer = 0; peer < ranks; ++peer) {
    for (uint32_t seen = 0; (seen = counters[peer].load()) < number;) {
      Futex(&counters[peer], FUTEX_WAIT, seen);
    }
  }
}

// Four allocations; a refused one is answered by going on with less, as a job that splits its
// batch.
void Forward(uint32_t step) {
  probe::Pass(Point::kForwardBegin, step);
  for (uint64_t i = 0; i < 4; ++i) probe::RefuseAllocation(1024, i * 1024);
  probe::EndMemoryPhase();
}

void Step(Counters* counters, int rank, int ranks, uint32_t step) {
  probe::Pass(Point::kDataNext, step);
  probe::Pass(Point::kStepBegin, step);
  Forward(step);
  shakedown::victims::Compute();
  probe::Pass(Point::kBackwardBegin, step);
  probe::CollectiveEntered();
  probe::Pass(Point::kCollectiveEnter, step);
  Contribute(counters, rank, step);
  probe::CollectiveEnqueued();
  probe::Pass(Point::kCollectiveEnqueued, step);
  AwaitPeers(counters, ranks, step);
  probe::Pass(Point::kCollectiveExit, step);
  probe::Pass(Point::kOptimizerBegin, step);
  probe::StepEnded(step);
  probe::Pass(Point::kStepEnd, step);
}

}  // namespace

int main(int argc, char** argv) {
  shakedown::victims::DieWithParent();
  if (argc < 4) return 64;
  Counters* counters = MapCounters(argv[1]);
  const int ranks = std::atoi(argv[2]);
  if (counters == nullptr || ranks < 1 || ranks > kMaxRanks) return 64;
  if (argc > 4 && std::strcmp(argv[4], "--swallow-term") == 0) {
    std::signal(SIGTERM, [](int) {});
  }
  const int rank = shakedown::victims::RankFromEnvironment();
  probe::Joined(rank, ranks);
  for (uint32_t step = 1;; ++step) Step(counters, rank, ranks, step);
}
