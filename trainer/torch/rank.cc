// The training of one rank, from joining the group to tearing it down: read RunRank, then Train and
// RunStep.
#include "trainer/rank.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <torch/version.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/file.h"
#include "harness/wire/log_events.h"
#include "harness/wire/run_dir.h"
#include "harness/wire/schedule.h"
#include "injectors/probe/probe.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/checkpoint/select.h"
#include "trainer/data/sampler.h"
#include "trainer/defects/defect.h"
#include "trainer/observe/collective_failure.h"
#include "trainer/observe/save_log.h"
#include "trainer/rank_progress.h"
#include "trainer/stop_agreement.h"
#include "trainer/torch/ddp.h"
#include "trainer/torch/memory.h"
#include "trainer/torch/micro_batch.h"
#include "trainer/torch/model.h"
#include "trainer/torch/tensor_state.h"

namespace shakedown {
namespace {

// A rank that fails waits at most so long for a save that is under way: long enough for a disk that
// works, short against any restart.
constexpr Milliseconds kPendingSaveLimit{1000};

// Until an absolute time, whatever signals come.
void SleepUntil(MonoTime time) {
  const timespec until{time.ns / 1'000'000'000, time.ns % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

double GradientNorm(const std::vector<NamedTensor>& parameters) {
  double sum = 0;
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor gradient = parameter.grad().contiguous();
    const auto* values = gradient.const_data_ptr<float>();
    for (int64_t i = 0; i < gradient.numel(); ++i) sum += double{values[i]} * double{values[i]};
  }
  return std::sqrt(sum);
}

class TrainingRank {
 public:
  explicit TrainingRank(RankContext& context)
      : context_(context),
        job_(context.job),
        rank_(context.environment.rank),
        world_size_(context.environment.world_size),
        steps_per_epoch_(StepsPerEpoch(context.job, context.data_set.samples)),
        progress_(context.log, context.found_step),
        stop_(context.environment.store_file),
        completed_(context.found_step) {}

  RankResult Run();
  // The exception that is being handled becomes a log line and an exit status.
  RankResult Failed() noexcept;

 private:
  void Start();
  void JoinGroup();
  void AgreeOnCheckpoint(c10d::Store& store);
  void MakeModel();
  void Resume();
  void MakeAverager();
  void OpenSaver();

  RankExit Train();
  void RunStep();
  int64_t RateStep() const;
  MicroBatch NextMicroBatch(int index, LedgerStep* record);
  void EndStep(MonoTime begin, LedgerStep record);
  bool StopAgreed();
  void Save();
  void SaveLate();
  RankExit Finish(RankExit exit);

  Position PositionNow() const;
  std::string RankFile(const char* name) const { return context_.environment.rank_dir / name; }
  RankExit Report(const std::exception& error);
  void DumpFlightRecorder();

  RankContext& context_;
  const JobConfig& job_;
  const int rank_;
  const int world_size_;
  const int64_t steps_per_epoch_;

  RankProgress progress_;
  const StopAgreement stop_;
  int64_t completed_;  // last complete step

  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<Group> group_;
  Mlp model_{nullptr};
  std::unique_ptr<torch::optim::AdamW> optimizer_;
  TrainingState state_;
  LedgerStart loaded_;
  int64_t resumed_from_ = 0;
  at::Tensor generator_;  // this rank's, to begin training with
  std::unique_ptr<GradientAverager> averager_;
  std::unique_ptr<MicroBatchRunner> micro_batches_;
  std::unique_ptr<CheckpointSaver> saver_;  // rank 0 only
  std::shared_ptr<const Snapshot> previous_save_;
  int64_t late_save_ = 0;  // kSavesWithoutSnapshot: the step that waits
};

// --- start ---------------------------------------------------------------------------------------

void TrainingRank::Start() {
  progress_.Log(EventLevel::kInfo, log_events::kRankStarted, "the rank has started",
                {{"world_size", world_size_},
                 {"attempt", context_.environment.attempt},
                 {"pid", ::getpid()},
                 {"torch", TORCH_VERSION}});
  // One thread: more would change the order of additions, and so the bits.
  at::set_num_threads(1);
  at::set_num_interop_threads(1);
}

// Which checkpoint: rank 0 says, so that all load the same one even where one of them finds the
// newest damaged.
void TrainingRank::AgreeOnCheckpoint(c10d::Store& store) {
  constexpr char kKey[] = "resume";
  if (rank_ == 0) store.set(kKey, std::to_string(progress_.step()));
  std::vector<std::string> arrived;
  for (int r = 0; r < world_size_; ++r) arrived.push_back("arrived/" + std::to_string(r));
  store.set(arrived[static_cast<size_t>(rank_)], std::string("1"));
  // All are waited for here, since a peer may take up to the start-up limit to come, and Gloo would
  // give it no more than the limit of a collective.
  store.wait(arrived);
  const std::string agreed = store.get_to_str(kKey);
  if (agreed == std::to_string(progress_.step()) || Planted(Defect::kRanksDisagree)) return;
  int64_t step = 0;
  const auto [end, error] = std::from_chars(agreed.data(), agreed.data() + agreed.size(), step);
  if (error != std::errc() || end != agreed.data() + agreed.size()) {
    throw RankFailure(kRankException, "rank 0 says it resumes from '" + agreed + "'");
  }
  completed_ = step;
  progress_.SetStep(step);
  context_.workers.reset();
  auto workers = context_.start_workers(step + 1);
  if (!workers) throw RankFailure(kRankData, workers.error().message);
  context_.workers = std::move(*workers);
}

void TrainingRank::JoinGroup() {
  progress_.Pass(Point::kInitStore);
  store_ = c10::make_intrusive<c10d::FileStore>(context_.environment.store_file, world_size_);
  store_->setTimeout(std::chrono::duration_cast<Milliseconds>(job_.startup_timeout));
  AgreeOnCheckpoint(*store_);
  progress_.Pass(Point::kInitGroup);
  group_ =
      std::make_unique<Group>(store_, rank_, world_size_,
                              std::chrono::duration_cast<Milliseconds>(job_.collective_timeout) *
                                  (Planted(Defect::kOtherTimeout) ? 2 : 1),
                              [this] { return progress_.step(); });
  probe::Joined(rank_, world_size_);
}

// The weights are drawn from the same seed on all ranks; then each rank goes on with its own.
void TrainingRank::MakeModel() {
  at::manual_seed(job_.seed);
  model_ = Mlp(context_.data_set.features, job_, context_.data_set.largest_label() + 1);
  std::vector<at::Tensor> parameters;
  for (const auto& item : model_->named_parameters()) {
    state_.parameters.emplace_back(item.key(), item.value());
    parameters.push_back(item.value());
  }
  optimizer_ = std::make_unique<torch::optim::AdamW>(
      parameters,
      torch::optim::AdamWOptions(LearningRate(job_, 1)).weight_decay(job_.weight_decay));
  state_.optimizer = optimizer_.get();
  InitializeOptimizerState(state_);
  const bool same_everywhere = Planted(Defect::kSameSeedOnEveryRank);
  at::manual_seed(job_.seed + 1 + (same_everywhere ? 0 : static_cast<uint64_t>(rank_)));
  generator_ = GeneratorState();
}

void TrainingRank::Resume() {
  if (progress_.step() == 0) return;
  progress_.Enter("resume");
  progress_.Pass(Point::kResumeLoad);
  const auto read = ReadCheckpoint(context_.checkpoint_fd, progress_.step());
  const auto refuse = [&](const std::string& why) {
    throw RankFailure(kRankCheckpoint, "cannot resume from checkpoint " +
                                           std::to_string(progress_.step()) + ": " + why);
  };
  if (!read) refuse(read.error().message);
  if (read->manifest.world_size != world_size_) {
    refuse("it is of a group of " + std::to_string(read->manifest.world_size) +
           " ranks, and this one has " + std::to_string(world_size_));
  }
  const at::Tensor fresh_generator = generator_;
  const Result<Position> position = Restore(read->bytes, state_, rank_, &generator_);
  if (!position) refuse(position.error().message);
  if (*position != PositionNow()) {
    refuse("it was made with another seed, batch or data set");
  }
  if (Planted(Defect::kForgetsGenerator)) generator_ = fresh_generator;
  if (Planted(Defect::kForgetsOptimizer)) InitializeOptimizerState(state_);
  resumed_from_ = progress_.step();
  loaded_.file = read->manifest.file;
  loaded_.file_digest = read->manifest.digest;
}

void TrainingRank::MakeAverager() {
  const auto warm_up = [&] {
    const at::Tensor input = at::zeros({1, context_.data_set.features});
    const at::Tensor labels = at::zeros({1}, at::kLong);
    at::nll_loss(at::log_softmax(model_->Forward(input, {}), 1), labels).backward();
  };
  averager_ =
      std::make_unique<GradientAverager>(*group_, state_.parameters, job_.bucket_bytes, warm_up);
  micro_batches_ =
      std::make_unique<MicroBatchRunner>(progress_, *group_, *averager_, model_, state_);
  progress_.Log(EventLevel::kInfo, log_events::kGroupJoined,
                "all ranks have joined the process group",
                {{"world_size", world_size_},
                 {"buckets", averager_->buckets()},
                 {"collective_timeout_ms",
                  std::chrono::duration_cast<Milliseconds>(job_.collective_timeout).count()}});
  SetGeneratorState(generator_);

  loaded_.step = static_cast<uint64_t>(progress_.step());
  loaded_.state = DigestState(state_);
  loaded_.t_ns = MonoNow().ns;
  OrFail(context_.ledger.Append(loaded_), kRankException);
  OrFail(PublishFile(RankFile(kRankWeightsStart), WeightBytes(state_), Durability::kBuffered),
         kRankException);
  if (progress_.step() == 0) {
    progress_.Log(EventLevel::kInfo, log_events::kStartedFresh, "training begins at step 1");
  } else {
    progress_.Log(EventLevel::kInfo, log_events::kResumed,
                  "training resumes from checkpoint " + std::to_string(progress_.step()),
                  {{"checkpoint", progress_.step()}, {"file", loaded_.file}});
  }
}

// Rank 0 saves for all: the state of the others differs from its own in the generators only.
void TrainingRank::OpenSaver() {
  if (rank_ != 0) return;
  auto saver =
      CheckpointSaver::Open(context_.checkpoint_dir, job_.checkpoint,
                            RecordSaves(context_.log, context_.ledger, job_.checkpoint.mode));
  if (!saver) throw RankFailure(kRankCheckpoint, saver.error().message);
  saver_ = std::move(*saver);
}

// --- training ------------------------------------------------------------------------------------

Position TrainingRank::PositionNow() const {
  // Step s ends at a position of the epoch that it belongs to, the last one included.
  if (progress_.step() == 0) return {0, 0, 0, job_.seed};
  return {progress_.step(), (progress_.step() - 1) / steps_per_epoch_,
          ((progress_.step() - 1) % steps_per_epoch_ + 1) * job_.global_batch(), job_.seed};
}

MicroBatch TrainingRank::NextMicroBatch(int index, LedgerStep* record) {
  progress_.Enter("data");
  progress_.Pass(Point::kDataNext);
  Result<Batch> batch = context_.workers->Next();
  if (!batch) throw RankFailure(kRankData, batch.error().message);
  if (resumed_from_ > 0 && Planted(Defect::kRecordsPlannedIds)) {
    batch->ids = Sampler(job_, context_.data_set.samples, rank_)
                     .Ids(BatchNumber(job_, progress_.step(), index));
  }
  record->ids.insert(record->ids.end(), batch->ids.begin(), batch->ids.end());
  const auto rows = static_cast<int64_t>(batch->ids.size());
  const float scale =
      1.0F / static_cast<float>(std::max<int>(context_.data_set.largest_pixel(), 1));
  return {at::from_blob(batch->pixels.data(), {rows, context_.data_set.features}, at::kByte)
              .to(at::kFloat)
              .mul_(scale),
          at::from_blob(batch->labels.data(), {rows}, at::kByte).to(at::kLong),
          1.0 / job_.accumulation, index == 0, index + 1 == job_.accumulation};
}

// Of the schedule. One place, so that a bug of a schedule has a place, too.
int64_t TrainingRank::RateStep() const {
  if (Planted(Defect::kStaleLearningRate)) return progress_.step() - 1;
  if (resumed_from_ > 0 && Planted(Defect::kForgetsLearningRate)) {
    return progress_.step() - resumed_from_;
  }
  return progress_.step();
}

void TrainingRank::RunStep() {
  const MonoTime begin = MonoNow();
  const MemoryLimitScope memory_limit;
  progress_.Enter("step");
  progress_.Pass(Point::kStepBegin);
  if ((progress_.step() - 1) % steps_per_epoch_ == 0) {
    const int64_t epoch = (progress_.step() - 1) / steps_per_epoch_;
    progress_.Log(EventLevel::kInfo, log_events::kEpochStarted,
                  "epoch " + std::to_string(epoch) + " begins", {{"epoch", epoch}});
  }
  LedgerStep record;
  const double learning_rate = LearningRate(job_, RateStep());
  static_cast<torch::optim::AdamWOptions&>(optimizer_->param_groups()[0].options())
      .lr(learning_rate);
  DropGradients(state_.parameters);

  double loss = 0;
  int parts = 1;
  for (int m = 0; m < job_.accumulation; ++m) {
    const MicroBatch batch = NextMicroBatch(m, &record);
    const auto done = micro_batches_->Run(batch, context_.environment.micro_batch_parts);
    loss += done.loss * batch.weight;
    parts = std::max(parts, done.parts);
  }

  progress_.Enter("optimizer");
  const double norm = GradientNorm(state_.parameters);
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    throw RankFailure(kRankNotFinite, "loss " + std::to_string(loss) + ", gradient norm " +
                                          std::to_string(norm) + ": not finite");
  }
  progress_.Pass(Point::kOptimizerBegin);
  if (!Planted(Defect::kNeverAppliesGradients)) optimizer_->step();
  if (progress_.step() == 20 && rank_ + 1 == world_size_ && Planted(Defect::kReplicaDrifts)) {
    auto* bits = static_cast<uint32_t*>(state_.parameters[0].second.mutable_data_ptr());
    bits[0] ^= 1U;
  }

  record.lr_bits = std::bit_cast<uint64_t>(learning_rate);
  record.loss_bits = std::bit_cast<uint64_t>(loss);
  record.grad_norm_bits = std::bit_cast<uint64_t>(norm);
  record.parts = static_cast<uint32_t>(parts);
  EndStep(begin, std::move(record));
}

void TrainingRank::EndStep(MonoTime begin, LedgerStep record) {
  progress_.Enter("step");
  const Position now = PositionNow();
  record.step = static_cast<uint64_t>(now.step);
  record.epoch = static_cast<uint64_t>(now.epoch);
  record.position = static_cast<uint64_t>(now.position);
  record.ids_digest = Xxh3Of(
      {reinterpret_cast<const char*>(record.ids.data()), record.ids.size() * sizeof(uint32_t)});
  for (const uint32_t id : record.ids) {
    record.ids_sum += Xxh3Of64({reinterpret_cast<const char*>(&id), sizeof id});
  }
  record.state = DigestState(state_);
  SleepUntil(begin + job_.step_time);
  record.t_ns = MonoNow().ns;
  OrFail(context_.ledger.Append(record), kRankException);
  progress_.Pass(Point::kStepEnd);
  completed_ = progress_.step();
  probe::StepEnded(static_cast<uint32_t>(progress_.step()));
  context_.heartbeat.StepCompleted(progress_.step());
}

void TrainingRank::Save() {
  progress_.Enter("checkpoint");
  progress_.Pass(Point::kCheckpointBegin);
  if (progress_.step() < job_.steps && Planted(Defect::kSavesWithoutSnapshot)) {
    late_save_ = progress_.step();
    return;
  }
  const std::vector<at::Tensor> generators = group_->AllGather(GeneratorState());
  if (saver_ == nullptr || job_.checkpoint.every == 0) return;
  saver_->Finish(std::nullopt);  // before the snapshot, so that there are never two
  const auto snapshot =
      std::make_shared<const Snapshot>(TakeSnapshot(state_, PositionNow(), generators));
  if (previous_save_ && Planted(Defect::kSavesOldState)) {
    const auto old = std::make_shared<Snapshot>(*previous_save_);
    old->position = snapshot->position;
    old->tensors.back() = snapshot->tensors.back();  // the position
    saver_->Save(progress_.step(), [old] { return Serialize(*old); });
    return;
  }
  if (kDefect == Defect::kSavesOldState) previous_save_ = snapshot;
  saver_->Save(progress_.step(), [snapshot] { return Serialize(*snapshot); });
}

// The last save's step, and the weights of now: as a save that is to read them while training goes
// on.
void TrainingRank::SaveLate() {
  const int64_t step = std::exchange(late_save_, 0);
  if (step == 0) return;
  const std::vector<at::Tensor> generators = group_->AllGather(GeneratorState());
  if (saver_ == nullptr) return;
  const int64_t now = progress_.step();
  progress_.SetStep(step);
  const auto snapshot =
      std::make_shared<const Snapshot>(TakeSnapshot(state_, PositionNow(), generators));
  progress_.SetStep(now);
  saver_->Finish(std::nullopt);
  saver_->Save(step, [snapshot] { return Serialize(*snapshot); });
}

bool TrainingRank::StopAgreed() {
  // After the last step all ranks end anyway.
  if (progress_.step() == job_.steps) return false;
  const auto stops = stop_.StopsAfter(progress_.step(), context_.termination.requested());
  if (!stops) throw RankFailure(kRankException, stops.error().message);
  return *stops;
}

RankExit TrainingRank::Train() {
  const int every = job_.checkpoint.every;
  int last = job_.steps;
  if (Planted(Defect::kEndsEarly)) --last;
  if (resumed_from_ > 0 && rank_ + 1 == world_size_ && Planted(Defect::kUnequalBatches)) --last;
  while (progress_.step() < last) {
    progress_.SetStep(progress_.step() + 1);
    RunStep();
    const bool stop = StopAgreed();
    if (stop) {
      context_.termination.Acting();
      progress_.Pass(Point::kTermReceived);
      progress_.Log(EventLevel::kWarning, log_events::kTermReceived,
                    "SIGTERM: all ranks stop after step " + std::to_string(progress_.step()));
    }
    const bool due = every > 0 && (progress_.step() % every == 0 || progress_.step() == job_.steps);
    SaveLate();
    if (due || stop) Save();
    if (stop) return kRankTerminated;
  }
  OrFail(PublishFile(RankFile(kRankWeightsEnd), WeightBytes(state_), Durability::kBuffered),
         kRankException);
  return kRankOk;
}

RankExit TrainingRank::Finish(RankExit exit) {
  progress_.Enter("teardown");
  context_.termination.Acting();
  progress_.Pass(Point::kTeardownBegin);
  if (saver_ != nullptr) {
    saver_->Finish(std::nullopt);
    if (!saver_->last_succeeded()) {
      throw RankFailure(kRankCheckpoint, "the last checkpoint of the training is not saved");
    }
    // All ranks have been in the collective of the save, after which nobody reads the mark.
    if (exit == kRankTerminated) stop_.Remove();
  }
  if (exit == kRankOk) {
    progress_.Log(EventLevel::kInfo, log_events::kTrainingFinished, "training is finished",
                  {{"steps", job_.steps}});
  }
  context_.workers.reset();
  saver_.reset();
  progress_.Pass(Point::kTeardownGroup);
  micro_batches_.reset();
  averager_.reset();
  group_.reset();
  return exit;
}

RankResult TrainingRank::Run() {
  Start();
  JoinGroup();
  MakeModel();
  Resume();
  MakeAverager();
  OpenSaver();
  context_.heartbeat.Ready();
  const RankExit exit = Finish(Train());
  return {exit, completed_};
}

// --- failure -------------------------------------------------------------------------------------

RankExit TrainingRank::Report(const std::exception& error) {
  const std::string text = TextOf(error);
  const auto* own = dynamic_cast<const RankFailure*>(&error);
  const CollectiveFailure failure =
      own != nullptr ? CollectiveFailure::kNone : ClassifyCollectiveFailure(text);
  const auto pending = group_ ? group_->FirstPending() : std::nullopt;
  const double waited_ms = ToMs(MonoNow() - (pending ? pending->called : progress_.phase_begin()));
  if (failure == CollectiveFailure::kPeerLost) {
    progress_.Log(EventLevel::kError, log_events::kPeerLost,
                  "a peer is gone: its connection broke in step " +
                      std::to_string(progress_.step()) + " (" + progress_.phase() + ")",
                  {{"phase", progress_.phase()}, {"error", text}, {"waited_ms", waited_ms}});
    return kRankPeerLost;
  }
  if (failure == CollectiveFailure::kTimeout) {
    const bool joined = group_ != nullptr;
    const Nanoseconds limit = joined ? job_.collective_timeout : job_.startup_timeout;
    progress_.Log(EventLevel::kError, log_events::kCollectiveTimeout,
                  "a collective did not complete in time in step " +
                      std::to_string(progress_.step()) + " (" + progress_.phase() + ")",
                  {{"phase", progress_.phase()},
                   {"collective", pending ? Json(pending->number) : Json(nullptr)},
                   {"timeout_ms", std::chrono::duration_cast<Milliseconds>(limit).count()},
                   {"waited_ms", waited_ms},
                   {"error", text}});
    return kRankCollectiveTimeout;
  }
  RankExit exit = own != nullptr ? own->exit : kRankException;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    // Outside of a micro-batch, where nothing can be retried.
    if (micro_batches_) micro_batches_->LogExhausted(error);
    exit = kRankOutOfMemory;
  }
  progress_.Log(
      EventLevel::kError, log_events::kRankFailed, "the rank failed: " + text,
      {{"phase", progress_.phase()}, {"error", text}, {"exit_code", static_cast<int>(exit)}});
  return exit;
}

// What this rank's collectives were, for whoever looks at the hang afterwards. A dump that cannot
// be written must not hide the failure itself.
void TrainingRank::DumpFlightRecorder() {
  if (group_ == nullptr) return;
  try {
    const std::string trace =
        c10d::dump_fr_trace_json(/*includeCollectives=*/true, /*onlyActive=*/false);
    (void)PublishFile(RankFile(kRankFlightRecorder), trace, Durability::kBuffered);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

RankResult TrainingRank::Failed() noexcept {
  RankExit exit = kRankException;
  try {
    throw;
  } catch (const std::exception& error) {
    exit = Report(error);
  } catch (...) {
    exit = Report(std::runtime_error("an exception of unknown type"));
  }
  if (saver_ != nullptr) saver_->Finish(kPendingSaveLimit);
  DumpFlightRecorder();
  return {exit, completed_};
}

}  // namespace

RankResult RunRank(RankContext& context) {
  InstallCountingAllocator();
  // Not destroyed after a failure: the destructors of group and saver may wait for threads that
  // wait for peers, and the process is about to end.
  auto* rank = new TrainingRank(context);
  try {
    const RankResult result = rank->Run();
    delete rank;
    return result;
  } catch (...) {
    return rank->Failed();
  }
}

}  // namespace shakedown
