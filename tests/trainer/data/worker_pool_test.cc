#include "trainer/data/worker_pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/process/spawn.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/schedule.h"
#include "tests/support/temp_dir.h"
#include "trainer/data/idx.h"

namespace shakedown {
namespace {

using ::testing::HasSubstr;

constexpr char kWorker[] = SHAKEDOWN_BINARY_DIR "/shakedown-data-worker";
constexpr char kDigits[] = SHAKEDOWN_SOURCE_DIR "/trainer/data/digits";

JobConfig Job() {
  JobConfig job;
  job.data_dir = kDigits;
  job.slow_data_warning = std::chrono::seconds(30);
  job.worker_deadline = std::chrono::seconds(30);
  return job;
}

// What the pool told its rank.
struct Calls {
  std::vector<int64_t> slow;
  std::vector<std::string> replaced;  // "batch incarnation reason"
  std::vector<std::string> died;      // "worker status"
};

WorkerPoolOptions Options(JobConfig job, Calls* calls) {
  WorkerPoolOptions options;
  options.worker_binary = kWorker;
  options.job = std::move(job);
  options.on_slow = [calls](int, int64_t batch, Nanoseconds) { calls->slow.push_back(batch); };
  options.on_replaced = [calls](int, int64_t batch, Nanoseconds, int incarnation,
                                std::string_view reason) {
    calls->replaced.push_back(std::to_string(batch) + " " + std::to_string(incarnation) + " " +
                              std::string(reason));
  };
  options.on_died = [calls](int worker, int64_t, const WaitStatus& status) {
    calls->died.push_back(std::to_string(worker) + " " + status.ToString());
  };
  return options;
}

std::unique_ptr<WorkerPool> Start(WorkerPoolOptions options) {
  auto pool = WorkerPool::Start(std::move(options));
  EXPECT_TRUE(pool) << pool.error().message;
  return pool ? *std::move(pool) : nullptr;
}

// What schedule.h says, written out: ids of batch `number` of `rank`.
std::vector<uint32_t> Expected(const JobConfig& job, int rank, int64_t number) {
  const int64_t step = (number - 1) / job.accumulation;
  const int64_t micro = (number - 1) % job.accumulation;
  const int64_t per_epoch = 1797 / job.global_batch();
  const auto order = EpochOrder(job.seed, step / per_epoch, 1797);
  const auto begin = order.begin() + step % per_epoch * job.global_batch() +
                     rank * job.micro_batch * job.accumulation + micro * job.micro_batch;
  return {begin, begin + job.micro_batch};
}

// Takes batches `first` to `last` and compares each with the schedule and with the files.
void ExpectBatches(WorkerPool& pool, const JobConfig& job, int rank, int64_t first, int64_t last) {
  static const Result<DataSet> data = LoadDataSet(kDigits);
  ASSERT_TRUE(data);
  for (int64_t number = first; number <= last; ++number) {
    const Result<Batch> batch = pool.Next();
    ASSERT_TRUE(batch) << batch.error().message;
    ASSERT_EQ(batch->number, number);
    ASSERT_EQ(batch->ids, Expected(job, rank, number)) << "batch " << number;
    ASSERT_EQ(batch->pixels.size(), batch->ids.size() * 64);
    for (size_t i = 0; i < batch->ids.size(); ++i) {
      const uint32_t id = batch->ids[i];
      ASSERT_EQ(batch->labels[i], data->labels[id]);
      ASSERT_TRUE(
          std::equal(&batch->pixels[i * 64], &batch->pixels[i * 64] + 64, &data->pixels[id * 64]));
    }
  }
}

UniqueFd PidfdOf(const WorkerPool& pool, int worker) {
  Result<UniqueFd> pidfd = OpenPidfd(pool.process(worker));
  EXPECT_TRUE(pidfd) << pidfd.error().message;
  return pidfd ? *std::move(pidfd) : UniqueFd();
}

// Blocks until the process has ended; false after 20 s.
bool HasEnded(const UniqueFd& pidfd, int timeout_ms = 20000) {
  pollfd fd{pidfd.get(), POLLIN, 0};
  return ::poll(&fd, 1, timeout_ms) == 1;
}

bool HasNoChildren() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(WorkerPool, DeliversTheScheduleOverTwoEpochsOnEveryRank) {
  for (int rank = 0; rank < 3; ++rank) {
    Calls calls;
    WorkerPoolOptions options = Options(Job(), &calls);
    options.rank = rank;
    const auto pool = Start(options);
    ASSERT_TRUE(pool);
    EXPECT_EQ(pool->samples(), 1797);
    EXPECT_EQ(pool->features(), 64);
    ExpectBatches(*pool, options.job, rank, 1, 2 * 37 * 2);
    EXPECT_TRUE(calls.slow.empty() && calls.replaced.empty() && calls.died.empty());
  }
}

TEST(WorkerPool, SeveralWorkersDeliverTheSameOrder) {
  Calls calls;
  JobConfig job = Job();
  job.workers = 3;
  job.prefetch = 1;
  const auto pool = Start(Options(job, &calls));
  ASSERT_TRUE(pool);
  ExpectBatches(*pool, job, 0, 1, 100);
}

TEST(WorkerPool, BeginsInTheMiddleOfAnEpoch) {
  Calls calls;
  JobConfig job = Job();
  job.workers = 2;
  WorkerPoolOptions options = Options(job, &calls);
  options.first_batch = 62;
  options.rank = 1;
  const auto pool = Start(options);
  ASSERT_TRUE(pool);
  ExpectBatches(*pool, job, 1, 62, 90);
}

TEST(WorkerPool, AKilledWorkerIsReportedAndItsBatchesAreMadeAgain) {
  Calls calls;
  const auto pool = Start(Options(Job(), &calls));
  ASSERT_TRUE(pool);
  ExpectBatches(*pool, Job(), 0, 1, 5);
  const UniqueFd pidfd = PidfdOf(*pool, 0);
  ASSERT_TRUE(SignalPidfd(pidfd.get(), SIGKILL));
  ASSERT_TRUE(HasEnded(pidfd));
  ExpectBatches(*pool, Job(), 0, 6, 20);
  EXPECT_THAT(calls.died, ::testing::ElementsAre("0 SIGKILL"));
  EXPECT_TRUE(calls.replaced.empty());
}

TEST(WorkerPool, AWorkerThatDiedWhileAnotherWasAskedIsBackInTime) {
  Calls calls;
  JobConfig job = Job();
  job.workers = 2;
  const auto pool = Start(Options(job, &calls));
  ASSERT_TRUE(pool);
  ExpectBatches(*pool, job, 0, 1, 4);
  const UniqueFd pidfd = PidfdOf(*pool, 1);
  ASSERT_TRUE(SignalPidfd(pidfd.get(), SIGKILL));
  ASSERT_TRUE(HasEnded(pidfd));
  ExpectBatches(*pool, job, 0, 5, 5);  // of worker 0
  EXPECT_THAT(calls.died, ::testing::ElementsAre("1 SIGKILL"));
  ExpectBatches(*pool, job, 0, 6, 20);
}

TEST(WorkerPool, AStoppedWorkerIsCalledSlowOnceAndThenReplaced) {
  Calls calls;
  JobConfig job = Job();
  job.slow_data_warning = Milliseconds(100);
  job.worker_deadline = Milliseconds(400);
  const auto pool = Start(Options(job, &calls));
  ASSERT_TRUE(pool);
  ExpectBatches(*pool, job, 0, 1, 3);
  const UniqueFd pidfd = PidfdOf(*pool, 0);
  ASSERT_TRUE(SignalPidfd(pidfd.get(), SIGSTOP));
  const MonoTime stopped = MonoNow();
  ExpectBatches(*pool, job, 0, 4, 20);
  EXPECT_GE(ToMs(MonoNow() - stopped), 400);
  EXPECT_EQ(calls.slow.size(), 1u);
  ASSERT_EQ(calls.replaced.size(), 1u);
  EXPECT_EQ(calls.replaced[0], std::to_string(calls.slow[0]) + " 1 deadline");
  EXPECT_TRUE(calls.died.empty());
  EXPECT_TRUE(HasEnded(pidfd, 0));
}

TEST(WorkerPool, ADamagedSlotIsMadeAgain) {
  ::setenv("VICTIM", "damage1", 1);
  Calls calls;
  WorkerPoolOptions options = Options(Job(), &calls);
  options.worker_binary = VICTIM_DATA_WORKER;
  const auto pool = Start(options);
  ASSERT_TRUE(pool);
  for (int64_t number = 1; number <= 4; ++number) {
    const Result<Batch> batch = pool->Next();
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->ids, Expected(Job(), 0, number));
  }
  EXPECT_THAT(calls.replaced, ::testing::ElementsAre("1 1 checksum"));
}

TEST(WorkerPool, ASlotDamagedTwiceIsAnError) {
  ::setenv("VICTIM", "damage", 1);
  Calls calls;
  WorkerPoolOptions options = Options(Job(), &calls);
  options.worker_binary = VICTIM_DATA_WORKER;
  const auto pool = Start(options);
  ASSERT_TRUE(pool);
  const Result<Batch> batch = pool->Next();
  ASSERT_FALSE(batch);
  EXPECT_THAT(batch.error().message, AllOf(HasSubstr("batch 1"), HasSubstr("checksum")));
  EXPECT_EQ(calls.replaced.size(), 2u);
}

TEST(WorkerPool, ABatchThatIsNotDueIsAnError) {
  ::setenv("VICTIM", "stray", 1);
  Calls calls;
  WorkerPoolOptions options = Options(Job(), &calls);
  options.worker_binary = VICTIM_DATA_WORKER;
  const auto pool = Start(options);
  ASSERT_TRUE(pool);
  EXPECT_FALSE(pool->Next());
}

TEST(WorkerPool, AWorkerThatAlwaysDiesIsAnErrorAfterThreeRestarts) {
  ::setenv("VICTIM", "exit", 1);
  Calls calls;
  WorkerPoolOptions options = Options(Job(), &calls);
  options.worker_binary = VICTIM_DATA_WORKER;
  const auto pool = Start(options);
  ASSERT_TRUE(pool);
  const Result<Batch> batch = pool->Next();
  ASSERT_FALSE(batch);
  EXPECT_THAT(batch.error().message, AllOf(HasSubstr("failed 4 times"), HasSubstr("exit 3")));
  EXPECT_EQ(calls.died.size(), 4u);
}

TEST(WorkerPool, AWorkerThatNeverGetsReadyIsReplacedAfterTheAllowanceAndIsNotCalledSlow) {
  ::setenv("VICTIM", "mute", 1);
  Calls calls;
  JobConfig job = Job();
  job.slow_data_warning = Milliseconds(1);
  job.worker_deadline = Milliseconds(1);
  WorkerPoolOptions options = Options(job, &calls);
  options.worker_binary = VICTIM_DATA_WORKER;
  options.start_allowance = Milliseconds(50);
  const auto pool = Start(options);
  ASSERT_TRUE(pool);
  EXPECT_FALSE(pool->Next());
  EXPECT_EQ(calls.replaced.size(), 4u);
  EXPECT_EQ(calls.replaced[0], "1 1 start");
  EXPECT_TRUE(calls.slow.empty());
}

TEST(WorkerPool, NothingIsLeftOfAPool) {
  const size_t before = OpenDescriptors();
  Calls calls;
  JobConfig job = Job();
  job.workers = 2;
  auto pool = Start(Options(job, &calls));
  ASSERT_TRUE(pool);
  ExpectBatches(*pool, job, 0, 1, 3);
  pool.reset();
  EXPECT_TRUE(HasNoChildren());
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(WorkerPool, AStoppedWorkerDoesNotKeepThePoolFromEnding) {
  Calls calls;
  auto pool = Start(Options(Job(), &calls));
  ASSERT_TRUE(pool);
  const UniqueFd pidfd = PidfdOf(*pool, 0);
  ASSERT_TRUE(SignalPidfd(pidfd.get(), SIGSTOP));
  pool.reset();
  EXPECT_TRUE(HasEnded(pidfd, 0));
  EXPECT_TRUE(HasNoChildren());
}

TEST(WorkerPool, AWorkerEndsWhenItsRankIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  SpawnOptions spawn;
  spawn.argv = {VICTIM_POOL_OWNER, kWorker, DumpJson(ToJson(Job()))};
  spawn.descriptors = {{write_end.get(), STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
  const Result<SpawnedProcess> owner = Spawn(spawn);
  ASSERT_TRUE(owner) << owner.error().message;
  write_end.Reset();
  std::string line;
  for (char c = 0; ::read(read_end.get(), &c, 1) == 1 && c != '\n';) line += c;
  const Result<Json> json = ParseJson(line);
  ASSERT_TRUE(json) << line;
  const Result<ProcessIdentity> identity = IdentityFromJson(*json);
  ASSERT_TRUE(identity);
  const Result<UniqueFd> worker = OpenPidfd(*identity);
  ASSERT_TRUE(worker) << worker.error().message;
  EXPECT_FALSE(HasEnded(*worker, 0));

  ASSERT_TRUE(SignalPidfd(owner->pidfd.get(), SIGKILL));
  ASSERT_TRUE(Wait(owner->pidfd.get()));
  EXPECT_TRUE(HasEnded(*worker));
}

TEST(WorkerPool, AMissingWorkerProgramIsAnErrorThatNamesIt) {
  Calls calls;
  WorkerPoolOptions options = Options(Job(), &calls);
  options.worker_binary = "/nonexistent/worker";
  const auto pool = WorkerPool::Start(options);
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message, HasSubstr("/nonexistent/worker"));
  EXPECT_TRUE(HasNoChildren());
}

TEST(WorkerPool, ADataSetSmallerThanAGlobalBatchIsAnError) {
  Calls calls;
  JobConfig job = Job();
  job.micro_batch = 1000;
  const auto pool = WorkerPool::Start(Options(job, &calls));
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message, HasSubstr("fewer than a global batch"));
}

TEST(WorkerPool, DataThatVanishesForTheWorkerEndsInAnErrorWithItsStatus) {
  const test_support::TempDir dir;
  std::filesystem::copy(kDigits, dir.path(), std::filesystem::copy_options::recursive);
  Calls calls;
  JobConfig job = Job();
  job.data_dir = dir.path();
  const auto pool = Start(Options(job, &calls));
  ASSERT_TRUE(pool);
  const UniqueFd pidfd = PidfdOf(*pool, 0);
  std::filesystem::remove(dir.path() / "labels-idx1-ubyte");
  ASSERT_TRUE(SignalPidfd(pidfd.get(), SIGKILL));
  Result<Batch> batch = pool->Next();
  while (batch) batch = pool->Next();
  EXPECT_THAT(batch.error().message, HasSubstr("exit " + std::to_string(kRankData)));
}

}  // namespace
}  // namespace shakedown
