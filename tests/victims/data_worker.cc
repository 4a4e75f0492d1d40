// A data worker that misbehaves as VICTIM says, in the protocol of trainer/data/worker_protocol.h:
//   mute      never says that it is ready
//   exit      exits 3 before its first batch
//   damage    every batch's bytes change after their checksum was taken
//   damage1   the same, but only the first batch of the first process
//   stray     delivers the batch after the one that is due
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "harness/wire/environment.h"
#include "harness/wire/json.h"
#include "trainer/data/idx.h"
#include "trainer/data/ring.h"
#include "trainer/data/sampler.h"
#include "trainer/data/worker_protocol.h"

namespace shakedown {
namespace {

void Tell(int64_t batch) {
  const WorkerPacket packet{batch};
  if (::send(kWorkerSocketFd, &packet, sizeof packet, MSG_NOSIGNAL) < 0) std::exit(1);
}

// Blocks; false at the end of file.
bool Hear() {
  char credit = 0;
  return ::recv(kWorkerSocketFd, &credit, 1, 0) > 0;
}

// One bit in the payload of every slot.
void DamageRing(size_t bytes) {
  auto* base = static_cast<uint8_t*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kWorkerRingFd, 0));
  if (base == MAP_FAILED) std::exit(1);
  base[bytes / 2] ^= 0x10;
  ::munmap(base, bytes);
}

int Run(const JobConfig& job, int rank, int64_t batch, const std::string& how, int incarnation) {
  if (how == "exit") return 3;
  if (how == "mute") {
    while (Hear()) {
    }
    return 0;
  }
  const Result<DataSet> data = LoadDataSet(job.data_dir);
  if (!data) return 1;
  const size_t payload_bytes = PayloadBytes(job, data->features);
  Result<Ring> ring = Ring::Map(UniqueFd(::dup(kWorkerRingFd)), job.prefetch, payload_bytes);
  if (!ring) return 1;
  Sampler sampler(job, static_cast<uint32_t>(data->samples), rank);
  Tell(kWorkerReady);
  // One slot is enough for it.
  for (int64_t position = 0;; ++position, batch += job.workers) {
    std::vector<uint8_t> payload(payload_bytes);
    const std::vector<uint32_t> ids = sampler.Ids(batch);
    std::memcpy(payload.data(), ids.data(), ids.size() * sizeof(uint32_t));
    ring->Put(ring->SlotOf(position), how == "stray" ? batch + 1 : batch, payload);
    const bool first = position == 0 && incarnation == 0;
    if (how == "damage" || (how == "damage1" && first)) DamageRing(payload_bytes);
    Tell(batch);
    if (!Hear()) return 0;
  }
}

}  // namespace
}  // namespace shakedown

int main(int argc, char** argv) {
  using namespace shakedown;
  const char* how = std::getenv("VICTIM");
  if (argc != 9 || how == nullptr) return 2;
  // --job JSON --rank R --worker W --first-batch N
  const Result<Json> json = ParseJson(argv[2]);
  if (!json) return 2;
  const Result<JobConfig> job = JobConfigFromJson(*json);
  if (!job) return 2;
  return Run(*job, std::atoi(argv[4]), std::atoll(argv[8]), how,
             std::atoi(std::getenv(env::kIncarnation)));
}
