#include "trainer/data/worker.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "harness/base/log.h"
#include "harness/base/status.h"
#include "harness/wire/exit_code.h"
#include "injectors/probe/probe.h"
#include "trainer/data/idx.h"
#include "trainer/data/ring.h"
#include "trainer/data/sampler.h"
#include "trainer/data/worker_protocol.h"

namespace shakedown {
namespace {

// Ends the process when the rank is gone, also while the main thread is stuck in a read or held at
// a fault point. PR_SET_PDEATHSIG would not do: it fires when the *thread* that started us ends,
// and is lost when the rank is gone before it is set.
void WatchTheRank() {
  std::thread([] {
    pollfd fd{kWorkerSocketFd, 0, 0};  // POLLHUP, and nothing else
    while (::poll(&fd, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(kRankPeerLost);
  }).detach();
}

// Whether the rank still wants batches; kYes: waits until it says something.
enum class Waiting { kNo, kYes };
enum class Answer { kFree, kNothing, kStop };
Answer AskTheRank(Waiting waiting) {
  char credit = 0;
  while (true) {
    const ssize_t n =
        ::recv(kWorkerSocketFd, &credit, sizeof credit, waiting == Waiting::kNo ? MSG_DONTWAIT : 0);
    if (n > 0) return Answer::kFree;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Answer::kNothing;
    return Answer::kStop;
  }
}

void TellTheRank(int64_t batch) {
  const WorkerPacket packet{batch};
  // A rank that does not listen any more is noticed by the next question or by the watching thread.
  (void)::send(kWorkerSocketFd, &packet, sizeof packet, MSG_NOSIGNAL);
}

class BatchMaker {
 public:
  BatchMaker(const WorkerOptions& options, DataSet data, Ring ring)
      : job_(options.job),
        data_(std::move(data)),
        ring_(std::move(ring)),
        sampler_(job_, static_cast<uint32_t>(data_.samples), options.rank),
        payload_(PayloadBytes(job_, data_.features)) {}

  Status Make(int64_t batch) {
    const auto point_step = static_cast<uint32_t>(batch);
    const probe::Verdict read = probe::Pass(Point::kWorkerRead, point_step);
    if (read.action == ArmAction::kIoError) {
      return FailErrno("read batch " + std::to_string(batch) + " from", job_.data_dir,
                       static_cast<int>(read.argument));
    }
    const std::vector<uint32_t> ids = sampler_.Ids(batch);
    probe::Pass(Point::kWorkerDecode, point_step);
    Decode(ids);
    ring_.Put(ring_.SlotOf(position_++), batch, payload_);
    probe::Pass(Point::kWorkerDeliver, point_step);
    TellTheRank(batch);
    return {};
  }

 private:
  void Decode(const std::vector<uint32_t>& ids) {
    uint8_t* to = payload_.data();
    std::memcpy(to, ids.data(), ids.size() * sizeof(uint32_t));
    to += ids.size() * sizeof(uint32_t);
    for (const uint32_t id : ids) *to++ = data_.labels[id];
    const auto features = static_cast<size_t>(data_.features);
    for (const uint32_t id : ids) {
      std::memcpy(to, data_.pixels.data() + id * features, features);
      to += features;
    }
  }

  const JobConfig& job_;
  const DataSet data_;
  Ring ring_;
  Sampler sampler_;
  std::vector<uint8_t> payload_;
  int64_t position_ = 0;
};

Status MakeBatches(const WorkerOptions& options) {
  Result<DataSet> data = LoadDataSet(options.job.data_dir);
  if (!data) return tl::unexpected(data.error());
  if (data->samples < options.job.global_batch()) {
    return Fail("'" + options.job.data_dir + "' has fewer samples than a global batch");
  }
  Result<Ring> ring = Ring::Map(UniqueFd(kWorkerRingFd), options.job.prefetch,
                                PayloadBytes(options.job, data->features));
  if (!ring) return tl::unexpected(ring.error());
  BatchMaker maker(options, *std::move(data), *std::move(ring));
  TellTheRank(kWorkerReady);

  int free_slots = options.job.prefetch;
  for (int64_t batch = options.first_batch;; batch += options.job.workers) {
    Answer answer = Answer::kNothing;
    do {
      answer = AskTheRank(free_slots == 0 ? Waiting::kYes : Waiting::kNo);
      if (answer == Answer::kFree) ++free_slots;
    } while (answer == Answer::kFree);
    if (answer == Answer::kStop) {
      probe::Pass(Point::kWorkerStop, static_cast<uint32_t>(batch));
      return {};
    }
    SHAKEDOWN_TRY(maker.Make(batch));
    --free_slots;
  }
}

}  // namespace

int RunWorker(const WorkerOptions& options) {
  WatchTheRank();
  probe::Pass(Point::kWorkerStart, static_cast<uint32_t>(options.first_batch));
  const Status made = MakeBatches(options);
  if (made) return kRankOk;
  LogError("data worker " + std::to_string(options.worker) + " of rank " +
           std::to_string(options.rank) + ": " + made.error().message);
  return kRankData;
}

}  // namespace shakedown
