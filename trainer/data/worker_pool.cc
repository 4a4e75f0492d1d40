#include "trainer/data/worker_pool.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "harness/process/spawn.h"
#include "harness/wire/environment.h"
#include "trainer/data/idx.h"
#include "trainer/data/ring.h"
#include "trainer/data/worker_protocol.h"
#include "trainer/defects/defect.h"

namespace shakedown {
namespace {

// A batch that three fresh processes could not make will not be made by a fourth.
constexpr int kMaxRestartsPerBatch = 3;
// Damaged memory twice in a row is no accident.
constexpr int kMaxDamagedPerBatch = 1;
// A stopping worker has nothing to save; one that takes longer is stuck.
constexpr Nanoseconds kStopGrace = Milliseconds(200);
constexpr Nanoseconds kKillGrace = Milliseconds(50);
// From the end of a worker's socket to the end of the worker: both happen in the same exit.
constexpr Nanoseconds kExitGrace = std::chrono::seconds(1);
// After SIGKILL only a process that hangs in the kernel, on dead storage, still lives.
constexpr Nanoseconds kUnkillable = std::chrono::seconds(5);

timespec ToTimespec(Nanoseconds d) {
  d = std::max(d, Nanoseconds(0));
  return {static_cast<time_t>(d.count() / 1'000'000'000),
          static_cast<long>(d.count() % 1'000'000'000)};
}

// Waits until one of `fds` is ready or `timeout` is over. A signal also ends the wait: callers
// loop.
void PollFor(std::span<pollfd> fds, Nanoseconds timeout) {
  const timespec limit = ToTimespec(timeout);
  if (::ppoll(fds.data(), fds.size(), &limit, nullptr) < 0) SHAKEDOWN_ASSERT(errno == EINTR);
}

// True once the process behind `pidfd` has ended.
bool AwaitEnd(int pidfd, Nanoseconds timeout) {
  const MonoTime deadline = MonoNow() + timeout;
  while (true) {
    pollfd fd{pidfd, POLLIN, 0};
    const Nanoseconds left = deadline - MonoNow();
    PollFor({&fd, 1}, left);
    if (fd.revents != 0) return true;
    if (left <= Nanoseconds(0)) return false;
  }
}

std::vector<std::string> WorkerEnvironment(int worker, int incarnation) {
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    // The heartbeat's descriptor is the rank's own; the other two are set below.
    if (name == env::kHeartbeatFd || name == env::kWorker || name == env::kIncarnation) continue;
    out.emplace_back(text);
  }
  out.push_back(std::string(env::kWorker) + "=" + std::to_string(worker));
  out.push_back(std::string(env::kIncarnation) + "=" + std::to_string(incarnation));
  return out;
}

// One process and its end of the line.
struct Worker {
  int index = 0;
  int incarnation = 0;
  int64_t batch = 0;     // the next that it has to deliver
  int64_t position = 0;  // how many this process has delivered
  int restarts = 0;      // for `batch`
  int damaged = 0;       // for `batch`
  SpawnedProcess process;
  UniqueFd socket;
  std::optional<Ring> ring;
  MonoTime started;
  std::optional<MonoTime> ready;
};

enum class Received { kNothing, kReady, kBatch, kClosed };

}  // namespace

class WorkerPool::Impl {
 public:
  explicit Impl(WorkerPoolOptions options)
      : options_(std::move(options)), next_(options_.first_batch) {}
  ~Impl() { Stop(); }

  Status Start();
  Result<Batch> Next();

  int64_t samples() const { return samples_; }
  int64_t features() const { return features_; }
  const ProcessIdentity& process(int worker) const {
    return workers_.at(static_cast<size_t>(worker)).process.identity;
  }

 private:
  const JobConfig& job() const { return options_.job; }
  Worker& WorkerOf(int64_t batch) {
    return workers_[static_cast<size_t>((batch - 1) % job().workers)];
  }

  Status Launch(Worker& worker);
  Status Restart(Worker& worker, const std::string& why);
  Result<WaitStatus> End(Worker& worker);
  Status Bury(Worker& worker);
  Status BuryTheDead(const Worker* but);
  Status Replace(Worker& worker, std::string_view reason, Nanoseconds waited);
  Status CheckDeadlines(Worker& worker, MonoTime asked, bool& warned);
  void AwaitNews(const Worker& worker, MonoTime asked, bool warned);
  Received Receive(Worker& worker);
  Result<Batch> TakeBatch(Worker& worker);
  void Stop();

  const WorkerPoolOptions options_;
  int64_t samples_ = 0;
  int64_t features_ = 0;
  int64_t next_;
  std::vector<Worker> workers_;
};

Status WorkerPool::Impl::Start() {
  SHAKEDOWN_ASSERT(job().workers >= 1 && job().prefetch >= 1 && options_.first_batch >= 1);
  const Result<DataSet> data = LoadDataSet(job().data_dir);
  if (!data) return tl::unexpected(data.error());
  samples_ = data->samples;
  features_ = data->features;
  if (samples_ < job().global_batch()) {
    return Fail("cannot train on '" + job().data_dir + "': " + std::to_string(samples_) +
                " samples are fewer than a global batch of " +
                std::to_string(job().global_batch()) + "; use fewer ranks or smaller batches");
  }
  workers_.resize(static_cast<size_t>(job().workers));
  for (int64_t batch = next_; batch < next_ + job().workers; ++batch) {
    Worker& worker = WorkerOf(batch);
    worker.index = static_cast<int>((batch - 1) % job().workers);
    worker.batch = batch;
    SHAKEDOWN_TRY(Launch(worker));
  }
  return {};
}

// Everything of an incarnation is new: what an old process still writes reaches nobody.
Status WorkerPool::Impl::Launch(Worker& worker) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return FailErrno("create a socket for", "data worker " + std::to_string(worker.index));
  }
  worker.socket.Reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  Result<Ring> ring = Ring::Create(job().prefetch, PayloadBytes(job(), features_));
  if (!ring) return tl::unexpected(ring.error());
  worker.ring.emplace(*std::move(ring));

  SpawnOptions spawn;
  spawn.argv = {
      options_.worker_binary,        "--job",    DumpJson(ToJson(job())),      "--rank",
      std::to_string(options_.rank), "--worker", std::to_string(worker.index), "--first-batch",
      std::to_string(worker.batch)};
  spawn.environment = WorkerEnvironment(worker.index, worker.incarnation);
  spawn.descriptors = {{STDOUT_FILENO, STDOUT_FILENO},
                       {STDERR_FILENO, STDERR_FILENO},
                       {theirs.get(), kWorkerSocketFd},
                       {worker.ring->fd(), kWorkerRingFd}};
  Result<SpawnedProcess> process = Spawn(spawn);
  if (!process) return tl::unexpected(process.error());
  worker.process = *std::move(process);
  worker.started = MonoNow();
  worker.ready.reset();
  worker.position = 0;
  return {};
}

// REQUIRES: the old process is reaped.
Status WorkerPool::Impl::Restart(Worker& worker, const std::string& why) {
  worker.process.pidfd.Reset();
  if (++worker.restarts > kMaxRestartsPerBatch || worker.damaged > kMaxDamagedPerBatch) {
    return Fail("data worker " + std::to_string(worker.index) + " of rank " +
                std::to_string(options_.rank) + " failed " + std::to_string(worker.restarts) +
                " times at batch " + std::to_string(worker.batch) + ", the last time: " + why +
                "; see the rank's stderr.log");
  }
  ++worker.incarnation;
  return Launch(worker);
}

// SIGKILL, and reaps. A process that has ended already keeps the status that it ended with.
Result<WaitStatus> WorkerPool::Impl::End(Worker& worker) {
  const int pidfd = worker.process.pidfd.get();
  SHAKEDOWN_TRY(SignalPidfd(pidfd, SIGKILL));
  if (AwaitEnd(pidfd, kUnkillable)) return Wait(pidfd);
  return Fail("data worker " + std::to_string(worker.index) + " (pid " +
              std::to_string(worker.process.pid) + ") does not end on SIGKILL: it hangs in the " +
              "kernel; look at the storage under '" + job().data_dir + "'");
}

Status WorkerPool::Impl::Bury(Worker& worker) {
  AwaitEnd(worker.process.pidfd.get(), kExitGrace);
  const Result<WaitStatus> status = End(worker);
  if (!status) return tl::unexpected(status.error());
  if (options_.on_died) options_.on_died(worker.index, worker.batch, *status);
  return Restart(worker, status->ToString());
}

// So that a worker that died while the rank was busy is back before its batch is asked for.
Status WorkerPool::Impl::BuryTheDead(const Worker* but) {
  for (Worker& worker : workers_) {
    if (&worker != but && AwaitEnd(worker.process.pidfd.get(), Nanoseconds(0))) {
      SHAKEDOWN_TRY(Bury(worker));
    }
  }
  return {};
}

Status WorkerPool::Impl::Replace(Worker& worker, std::string_view reason, Nanoseconds waited) {
  SHAKEDOWN_TRY(End(worker));
  if (options_.on_replaced) {
    options_.on_replaced(worker.index, worker.batch, waited, worker.incarnation + 1, reason);
  }
  if (Planted(Defect::kReplacedWorkerLosesItsBatch)) {
    worker.batch += job().workers;
    next_ += job().workers;
  }
  if (worker.batch > job().workers && Planted(Defect::kReplacedWorkerRepeatsABatch)) {
    worker.batch -= job().workers;
    next_ -= job().workers;
  }
  return Restart(worker, std::string(reason));
}

namespace {

// From when on the rank waits for this process, as far as its deadlines are concerned.
MonoTime WaitsSince(const Worker& worker, MonoTime asked) {
  return worker.ready ? std::max(asked, *worker.ready) : worker.started;
}

}  // namespace

Status WorkerPool::Impl::CheckDeadlines(Worker& worker, MonoTime asked, bool& warned) {
  const Nanoseconds waited = MonoNow() - WaitsSince(worker, asked);
  if (!worker.ready) {
    return waited >= options_.start_allowance ? Replace(worker, "start", waited) : Status();
  }
  if (!warned && waited >= job().slow_data_warning) {
    warned = true;
    if (options_.on_slow) options_.on_slow(worker.index, worker.batch, waited);
  }
  return waited >= job().worker_deadline ? Replace(worker, "deadline", waited) : Status();
}

// Until the worker says something, another one dies, or a deadline has come.
void WorkerPool::Impl::AwaitNews(const Worker& worker, MonoTime asked, bool warned) {
  Nanoseconds limit = worker.ready ? job().worker_deadline : options_.start_allowance;
  if (worker.ready && !warned) limit = std::min(limit, job().slow_data_warning);
  std::vector<pollfd> fds = {{worker.socket.get(), POLLIN, 0}};
  for (const Worker& other : workers_) {
    if (&other != &worker) fds.push_back({other.process.pidfd.get(), POLLIN, 0});
  }
  PollFor(fds, WaitsSince(worker, asked) + limit - MonoNow());
}

Received WorkerPool::Impl::Receive(Worker& worker) {
  WorkerPacket packet{};
  const ssize_t n = ::recv(worker.socket.get(), &packet, sizeof packet, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Received::kNothing;
  // Reset, end of file, or something that is not our protocol.
  if (n != sizeof packet) return Received::kClosed;
  if (packet.batch != kWorkerReady) return Received::kBatch;
  worker.ready = MonoNow();
  return Received::kReady;
}

Result<Batch> WorkerPool::Impl::TakeBatch(Worker& worker) {
  std::vector<uint8_t> payload(PayloadBytes(job(), features_));
  SHAKEDOWN_TRY(worker.ring->Take(worker.ring->SlotOf(worker.position), worker.batch, payload));
  const auto samples = static_cast<size_t>(job().micro_batch);
  Batch batch;
  batch.number = worker.batch;
  batch.ids.resize(samples);
  const uint8_t* from = payload.data();
  std::memcpy(batch.ids.data(), from, samples * sizeof(uint32_t));
  from += samples * sizeof(uint32_t);
  batch.labels.assign(from, from + samples);
  from += samples;
  batch.pixels.assign(from, from + samples * static_cast<size_t>(features_));
  return batch;
}

Result<Batch> WorkerPool::Impl::Next() {
  Worker& worker = WorkerOf(next_);
  const MonoTime asked = MonoNow();
  bool warned = false;
  SHAKEDOWN_TRY(BuryTheDead(nullptr));
  while (true) {
    switch (Receive(worker)) {
      case Received::kReady:
        break;
      case Received::kClosed:
        SHAKEDOWN_TRY(Bury(worker));
        break;
      case Received::kNothing:
        SHAKEDOWN_TRY(CheckDeadlines(worker, asked, warned));
        AwaitNews(worker, asked, warned);
        SHAKEDOWN_TRY(BuryTheDead(&worker));
        break;
      case Received::kBatch: {
        Result<Batch> batch = TakeBatch(worker);
        if (!batch) {
          ++worker.damaged;
          SHAKEDOWN_TRY(Replace(worker, "checksum", MonoNow() - asked));
          break;
        }
        // The slot is free. When the worker is gone, its next batch will show it.
        const char free = 1;
        (void)::send(worker.socket.get(), &free, sizeof free, MSG_NOSIGNAL | MSG_DONTWAIT);
        worker.batch += job().workers;
        ++worker.position;
        worker.restarts = 0;
        worker.damaged = 0;
        ++next_;
        return batch;
      }
    }
  }
}

void WorkerPool::Impl::Stop() {
  for (const Worker& worker : workers_) {
    if (worker.process.pidfd.valid()) ::shutdown(worker.socket.get(), SHUT_WR);
  }
  const MonoTime stopped = MonoNow() + kStopGrace;
  for (const Worker& worker : workers_) {
    if (!worker.process.pidfd.valid()) continue;
    if (!AwaitEnd(worker.process.pidfd.get(), stopped - MonoNow())) {
      (void)SignalPidfd(worker.process.pidfd.get(), SIGKILL);
    }
  }
  const MonoTime killed = MonoNow() + kKillGrace;
  for (const Worker& worker : workers_) {
    if (!worker.process.pidfd.valid()) continue;
    // One that not even SIGKILL ends in time (it hangs in the kernel) is left to our own parent.
    if (AwaitEnd(worker.process.pidfd.get(), killed - MonoNow())) {
      (void)TryWait(worker.process.pidfd.get());
    }
  }
}

WorkerPool::WorkerPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WorkerPool::~WorkerPool() = default;

Result<std::unique_ptr<WorkerPool>> WorkerPool::Start(WorkerPoolOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (Status started = impl->Start(); !started)
    return Wrap("cannot start data workers", started.error());
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(impl)));
}

Result<Batch> WorkerPool::Next() { return impl_->Next(); }
int64_t WorkerPool::samples() const { return impl_->samples(); }
int64_t WorkerPool::features() const { return impl_->features(); }
const ProcessIdentity& WorkerPool::process(int worker) const { return impl_->process(worker); }

}  // namespace shakedown
