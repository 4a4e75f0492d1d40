// The training of one rank, from joining the group to tearing it down: read RunRank, then Train and
// RunStep.
#include "trainer/rank.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fcntl.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>
#include <torch/version.h>
#include <unistd.h>

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
#include "trainer/observe/collective_failure.h"
#include "trainer/torch/ddp.h"
#include "trainer/torch/memory.h"
#include "trainer/torch/model.h"
#include "trainer/torch/tensor_state.h"

namespace shakedown {
namespace {

// A rank that fails waits at most so long for a save that is under way: long enough for a disk that
// works, short against any restart.
constexpr Milliseconds kPendingSaveLimit{1000};
// Splitting goes no further: a micro-batch that does not fit in quarters will not fit in eighths.
constexpr int kMostParts = 4;

// Ends the rank with a status and a reason; caught in RunRank. Beside it only torch throws here.
struct RankFailure : std::runtime_error {
  RankFailure(RankExit status, const std::string& error)
      : std::runtime_error(error), exit(status) {}
  RankExit exit;
};

void OrFail(const Status& status, RankExit exit) {
  if (!status) throw RankFailure(exit, status.error().message);
}

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

struct MicroBatch {
  at::Tensor input;
  at::Tensor labels;
  double weight = 1;  // of its mean loss in the step's
  bool last = false;  // of the step: its backward pass averages over the ranks
};

class TrainingRank {
 public:
  explicit TrainingRank(RankContext& context)
      : context_(context),
        job_(context.job),
        rank_(context.environment.rank),
        world_size_(context.environment.world_size),
        steps_per_epoch_(StepsPerEpoch(context.job, context.data_set.samples)),
        step_(context.found_step),
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
  double RunMicroBatch(const MicroBatch& batch, int* parts_used);
  double TryMicroBatch(const MicroBatch& batch, int parts);
  void RecoverMemory(const std::exception& error, const MicroBatch& batch, int parts,
                     const at::Tensor& generator);
  MicroBatch NextMicroBatch(int index, LedgerStep* record);
  void EndStep(MonoTime begin, LedgerStep record);
  bool StopAgreed();
  void Save();
  RankExit Finish(RankExit exit);

  void Pass(Point point) { probe::Pass(point, static_cast<uint32_t>(step_)); }
  Position PositionNow() const;
  void Log(EventLevel level, const char* event, const std::string& message,
           Json fields = Json::object()) {
    context_.log.Write(level, event, message, fields);
  }
  std::string RankFile(const char* name) const { return context_.environment.rank_dir / name; }
  RankExit Report(const std::exception& error);
  std::string StopMark() const { return context_.environment.store_file.native() + ".stop"; }

  RankContext& context_;
  const JobConfig& job_;
  const int rank_;
  const int world_size_;
  const int64_t steps_per_epoch_;

  int64_t step_;       // being trained; before the first, the one resumed from
  int64_t completed_;  // last complete one
  const char* phase_ = "init";
  MonoTime phase_begin_ = MonoNow();
  void Enter(const char* phase) {
    phase_ = phase;
    phase_begin_ = MonoNow();
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<Group> group_;
  Mlp model_{nullptr};
  std::unique_ptr<torch::optim::AdamW> optimizer_;
  TrainingState state_;
  LedgerStart loaded_;
  at::Tensor generator_;  // this rank's, to begin training with
  std::unique_ptr<GradientAverager> averager_;
  std::unique_ptr<CheckpointSaver> saver_;  // rank 0 only

  int64_t called_before_step_ = 0;    // collectives
  std::vector<at::Tensor> held_;      // gradients before the micro-batch that is being computed
  bool holding_ = false;              // held_ counts: it is not the first micro-batch
  int parts_ = 1;                     // micro-batches begin in so many parts
};

// --- start ---------------------------------------------------------------------------------------

void TrainingRank::Start() {
  Log(EventLevel::kInfo, log_events::kRankStarted, "the rank has started",
      {{"world_size", world_size_},
       {"attempt", context_.environment.attempt},
       {"pid", ::getpid()},
       {"torch", TORCH_VERSION}});
  // One thread: more would change the order of additions, and so the bits.
  at::set_num_threads(1);
  at::set_num_interop_threads(1);
  parts_ = context_.environment.micro_batch_parts;
}

// Which checkpoint: rank 0 says, so that all load the same one even where one of them finds the
// newest damaged.
void TrainingRank::AgreeOnCheckpoint(c10d::Store& store) {
  constexpr char kKey[] = "resume";
  if (rank_ == 0) store.set(kKey, std::to_string(step_));
  std::vector<std::string> arrived;
  for (int r = 0; r < world_size_; ++r) arrived.push_back("arrived/" + std::to_string(r));
  store.set(arrived[static_cast<size_t>(rank_)], std::string("1"));
  // All are waited for here, since a peer may take up to the start-up limit to come, and Gloo would
  // give it no more than the limit of a collective.
  store.wait(arrived);
  const std::string agreed = store.get_to_str(kKey);
  if (agreed == std::to_string(step_)) return;
  const auto [end, error] = std::from_chars(agreed.data(), agreed.data() + agreed.size(), step_);
  if (error != std::errc() || end != agreed.data() + agreed.size()) {
    throw RankFailure(kRankException, "rank 0 says it resumes from '" + agreed + "'");
  }
  completed_ = step_;
  context_.log.SetStep(step_);
  context_.workers.reset();
  auto workers = context_.start_workers(step_ + 1);
  if (!workers) throw RankFailure(kRankData, workers.error().message);
  context_.workers = std::move(*workers);
}

void TrainingRank::JoinGroup() {
  Pass(Point::kInitStore);
  store_ = c10::make_intrusive<c10d::FileStore>(context_.environment.store_file, world_size_);
  store_->setTimeout(std::chrono::duration_cast<Milliseconds>(job_.startup_timeout));
  AgreeOnCheckpoint(*store_);
  Pass(Point::kInitGroup);
  group_ = std::make_unique<Group>(
      store_, rank_, world_size_,
      std::chrono::duration_cast<Milliseconds>(job_.collective_timeout), [this] { return step_; });
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
      parameters, torch::optim::AdamWOptions(LearningRate(job_, 1)).weight_decay(job_.weight_decay));
  state_.optimizer = optimizer_.get();
  InitializeOptimizerState(state_);
  at::manual_seed(job_.seed + 1 + static_cast<uint64_t>(rank_));
  generator_ = GeneratorState();
}

void TrainingRank::Resume() {
  if (step_ == 0) return;
  Enter("resume");
  Pass(Point::kResumeLoad);
  const auto read = ReadCheckpoint(context_.checkpoint_fd, step_);
  const auto refuse = [&](const std::string& why) {
    throw RankFailure(kRankCheckpoint,
                      "cannot resume from checkpoint " + std::to_string(step_) + ": " + why);
  };
  if (!read) refuse(read.error().message);
  if (read->manifest.world_size != world_size_) {
    refuse("it is of a group of " + std::to_string(read->manifest.world_size) +
           " ranks, and this one has " + std::to_string(world_size_));
  }
  const Result<Position> position = Restore(read->bytes, state_, rank_, &generator_);
  if (!position) refuse(position.error().message);
  if (*position != PositionNow()) {
    refuse("it was made with another seed, batch or data set");
  }
  loaded_.file = read->manifest.file;
  loaded_.file_digest = read->manifest.digest;
}

void TrainingRank::MakeAverager() {
  const auto warm_up = [&] {
    const at::Tensor input = at::zeros({1, context_.data_set.features});
    const at::Tensor labels = at::zeros({1}, at::kLong);
    at::nll_loss(at::log_softmax(model_->Forward(input, {}), 1), labels).backward();
  };
  averager_ = std::make_unique<GradientAverager>(*group_, state_.parameters, job_.bucket_bytes,
                                                 warm_up);
  Log(EventLevel::kInfo, log_events::kGroupJoined, "all ranks have joined the process group",
      {{"world_size", world_size_},
       {"buckets", averager_->buckets()},
       {"collective_timeout_ms",
        std::chrono::duration_cast<Milliseconds>(job_.collective_timeout).count()}});
  SetGeneratorState(generator_);

  loaded_.step = static_cast<uint64_t>(step_);
  loaded_.state = DigestState(state_);
  loaded_.t_ns = MonoNow().ns;
  OrFail(context_.ledger.Append(loaded_), kRankException);
  OrFail(PublishFile(RankFile(kRankWeightsStart), WeightBytes(state_), Durability::kBuffered),
         kRankException);
  if (step_ == 0) {
    Log(EventLevel::kInfo, log_events::kStartedFresh, "training begins at step 1");
  } else {
    Log(EventLevel::kInfo, log_events::kResumed,
        "training resumes from checkpoint " + std::to_string(step_),
        {{"checkpoint", step_}, {"file", loaded_.file}});
  }
}

// Rank 0 saves for all: the state of the others differs from its own in the generators only.
void TrainingRank::OpenSaver() {
  if (rank_ != 0) return;
  SaveObserver observer;
  observer.saved = [this](const SavedCheckpoint& saved) {
    const CheckpointManifest& manifest = saved.manifest;
    Log(EventLevel::kInfo, log_events::kCheckpointSaved,
        "checkpoint " + std::to_string(manifest.step) + " is saved",
        {{"checkpoint", manifest.step},
         {"file", manifest.file},
         {"bytes", manifest.bytes},
         {"write_ms", ToMs(saved.took)}});
    const Status recorded = context_.ledger.Append(LedgerCheckpoint{
        static_cast<uint64_t>(manifest.step), manifest.digest, MonoNow().ns});
    if (!recorded) {
      Log(EventLevel::kError, log_events::kRankFailed, recorded.error().message,
          {{"phase", "checkpoint"}, {"error", recorded.error().message}, {"exit_code", nullptr}});
    }
  };
  observer.failed = [this](int64_t step, const PublishError& failure) {
    Log(EventLevel::kError, log_events::kCheckpointFailed,
        "checkpoint " + std::to_string(step) + " is not saved (" + failure.operation +
            "); training goes on, and the checkpoints before it are still there",
        {{"checkpoint", step},
         {"operation", failure.operation},
         {"errno", failure.error.code},
         {"error", failure.error.message},
         {"mode", ToString(job_.checkpoint.mode)}});
  };
  observer.rotation_failed = [this](int64_t step, const Error& error) {
    Log(EventLevel::kWarning, log_events::kRotationFailed,
        "an old checkpoint could not be removed; the directory will grow",
        {{"checkpoint", step}, {"errno", error.code}, {"error", error.message}});
  };
  auto saver = CheckpointSaver::Open(context_.checkpoint_dir, job_.checkpoint, observer);
  if (!saver) throw RankFailure(kRankCheckpoint, saver.error().message);
  saver_ = std::move(*saver);
}

// --- training ------------------------------------------------------------------------------------

Position TrainingRank::PositionNow() const {
  // Step s ends at a position of the epoch that it belongs to, the last one included.
  if (step_ == 0) return {0, 0, 0, job_.seed};
  return {step_, (step_ - 1) / steps_per_epoch_,
          ((step_ - 1) % steps_per_epoch_ + 1) * job_.global_batch(), job_.seed};
}

MicroBatch TrainingRank::NextMicroBatch(int index, LedgerStep* record) {
  Enter("data");
  Pass(Point::kDataNext);
  Result<Batch> batch = context_.workers->Next();
  if (!batch) throw RankFailure(kRankData, batch.error().message);
  record->ids.insert(record->ids.end(), batch->ids.begin(), batch->ids.end());
  const auto rows = static_cast<int64_t>(batch->ids.size());
  const float scale = 1.0F / static_cast<float>(std::max<int>(context_.data_set.largest_pixel(), 1));
  return {at::from_blob(batch->pixels.data(), {rows, context_.data_set.features}, at::kByte)
              .to(at::kFloat)
              .mul_(scale),
          at::from_blob(batch->labels.data(), {rows}, at::kByte).to(at::kLong),
          1.0 / job_.accumulation, index + 1 == job_.accumulation};
}

// Computes the micro-batch in `parts`, one after the other. Equal to the whole one up to rounding:
// the parts are weighted by size, use slices of the same dropout masks, and only the last part of
// the last micro-batch averages. Returns the mean loss over the micro-batch.
double TrainingRank::TryMicroBatch(const MicroBatch& batch, int parts) {
  const int64_t rows = batch.input.size(0);
  std::vector<at::Tensor> masks;
  double loss = 0;
  for (int part = 0; part < parts; ++part) {
    const int64_t begin = rows * part / parts;
    const int64_t size = rows * (part + 1) / parts - begin;
    const double share = static_cast<double>(size) / static_cast<double>(rows);
    Enter("forward");
    Pass(Point::kForwardBegin);
    if (part == 0) masks = model_->DrawMasks(rows);
    std::vector<at::Tensor> slices;
    for (const at::Tensor& mask : masks) slices.push_back(mask.narrow(0, begin, size));
    const at::Tensor logits = model_->Forward(batch.input.narrow(0, begin, size), slices);
    const at::Tensor mean =
        at::nll_loss(at::log_softmax(logits, 1), batch.labels.narrow(0, begin, size));
    const at::Tensor contribution = mean * (batch.weight * share);
    probe::EndMemoryPhase();
    loss += share * double{mean.item<float>()};

    Enter("backward");
    Pass(Point::kBackwardBegin);
    if (batch.last && part + 1 == parts) averager_->AverageNextBackward();
    contribution.backward();
  }
  group_->Settle();
  return loss;
}

// Everything as before the micro-batch: generator, gradients, Reducer. Throws where that is not
// possible any more.
void TrainingRank::RecoverMemory(const std::exception& error, const MicroBatch& batch, int parts,
                                 const at::Tensor& generator) {
  const RefusedAllocation refused = LastRefused();
  Log(EventLevel::kError, log_events::kMemoryExhausted,
      "out of memory in step " + std::to_string(step_) + " (" + phase_ + ")",
      {{"phase", phase_},
       {"requested_bytes", refused.requested_bytes},
       {"in_use_bytes", refused.in_use_bytes},
       {"limit_bytes", nullptr},
       {"error", error.what()}});
  // A bucket that is on its way cannot be called back, and the peers would take a second one for
  // that of another step.
  if (group_->called() != called_before_step_) {
    throw RankFailure(kRankOutOfMemory,
                      "out of memory after a bucket of the step was launched: cannot retry");
  }
  const int next = parts * 2;
  if (next > kMostParts || next > batch.input.size(0)) {
    throw RankFailure(kRankOutOfMemory, "out of memory even with the micro-batch in " +
                                            std::to_string(parts) + " parts");
  }
  averager_->AbandonBackward();
  SetGeneratorState(generator);
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    const at::Tensor& parameter = state_.parameters[i].second;
    parameter.mutable_grad() = holding_ ? held_[i].clone() : at::Tensor();
  }
}

double TrainingRank::RunMicroBatch(const MicroBatch& batch, int* parts_used) {
  const at::Tensor generator = GeneratorState();
  for (int parts = parts_;; parts *= 2) {
    try {
      const double loss = TryMicroBatch(batch, parts);
      if (parts > parts_) {
        Log(EventLevel::kWarning, log_events::kMemorySplit,
            "the micro-batch was computed in " + std::to_string(parts) + " parts",
            {{"parts", parts}});
      }
      *parts_used = std::max(*parts_used, parts);
      return loss;
    } catch (const c10::OutOfMemoryError& error) {
      RecoverMemory(error, batch, parts, generator);
    }
  }
}

void TrainingRank::RunStep() {
  const MonoTime begin = MonoNow();
  const MemoryLimitScope limited;
  Enter("step");
  Pass(Point::kStepBegin);
  if ((step_ - 1) % steps_per_epoch_ == 0) {
    const int64_t epoch = (step_ - 1) / steps_per_epoch_;
    Log(EventLevel::kInfo, log_events::kEpochStarted,
        "epoch " + std::to_string(epoch) + " begins", {{"epoch", epoch}});
  }
  LedgerStep record;
  const double learning_rate = LearningRate(job_, step_);
  static_cast<torch::optim::AdamWOptions&>(optimizer_->param_groups()[0].options())
      .lr(learning_rate);
  DropGradients(state_.parameters);
  called_before_step_ = group_->called();

  double loss = 0;
  int parts = 1;
  for (int m = 0; m < job_.accumulation; ++m) {
    const MicroBatch batch = NextMicroBatch(m, &record);
    // Should memory run out, the gradients so far must come back exactly. The step's first
    // micro-batch has none.
    holding_ = m > 0;
    for (size_t i = 0; holding_ && i < held_.size(); ++i) {
      held_[i].copy_(state_.parameters[i].second.grad());
    }
    loss += RunMicroBatch(batch, &parts) * batch.weight;
  }

  Enter("optimizer");
  const double norm = GradientNorm(state_.parameters);
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    throw RankFailure(kRankNotFinite, "loss " + std::to_string(loss) + ", gradient norm " +
                                          std::to_string(norm) + ": not finite");
  }
  Pass(Point::kOptimizerBegin);
  optimizer_->step();

  record.lr_bits = std::bit_cast<uint64_t>(learning_rate);
  record.loss_bits = std::bit_cast<uint64_t>(loss);
  record.grad_norm_bits = std::bit_cast<uint64_t>(norm);
  record.parts = static_cast<uint32_t>(parts);
  EndStep(begin, std::move(record));
}

void TrainingRank::EndStep(MonoTime begin, LedgerStep record) {
  Enter("step");
  const Position now = PositionNow();
  record.step = static_cast<uint64_t>(now.step);
  record.epoch = static_cast<uint64_t>(now.epoch);
  record.position = static_cast<uint64_t>(now.position);
  record.ids_digest = Xxh3Of({reinterpret_cast<const char*>(record.ids.data()),
                              record.ids.size() * sizeof(uint32_t)});
  for (const uint32_t id : record.ids) {
    record.ids_sum += Xxh3Of64({reinterpret_cast<const char*>(&id), sizeof id});
  }
  record.state = DigestState(state_);
  SleepUntil(begin + job_.step_time);
  record.t_ns = MonoNow().ns;
  OrFail(context_.ledger.Append(record), kRankException);
  Pass(Point::kStepEnd);
  completed_ = step_;
  probe::StepEnded(static_cast<uint32_t>(step_));
  context_.heartbeat.StepCompleted(step_);
}

// True when all ranks stop after this step, on all of them alike.
//
// A rank that sees SIGTERM at the end of step s marks s + 1 in a file beside the store, once for all:
// making a symbolic link is atomic and fails where there is one. It does so before it contributes to
// the averages of step s + 1, so whoever completes step s + 1 finds the mark; and nobody is past
// step s + 1 then. A missing mark costs 1 us a step; a collective of its own would cost 100.
bool TrainingRank::StopAgreed() {
  if (step_ == job_.steps) return false;
  const std::string mark = StopMark();
  char text[32];
  ssize_t size = ::readlink(mark.c_str(), text, sizeof text);
  if (size < 0 && context_.termination.requested()) {
    if (::symlink(std::to_string(step_ + 1).c_str(), mark.c_str()) != 0 && errno != EEXIST) {
      throw RankFailure(kRankException,
                        "cannot agree on a step to stop at: " +
                            FailErrno("make the link", mark).value().message);
    }
    size = ::readlink(mark.c_str(), text, sizeof text);
  }
  return size > 0 && std::string_view(text, static_cast<size_t>(size)) == std::to_string(step_);
}

void TrainingRank::Save() {
  Enter("checkpoint");
  Pass(Point::kCheckpointBegin);
  const std::vector<at::Tensor> generators = group_->AllGather(GeneratorState());
  if (saver_ == nullptr || job_.checkpoint.every == 0) return;
  saver_->Finish(std::nullopt);  // before the snapshot, so that there are never two
  const auto snapshot =
      std::make_shared<const Snapshot>(TakeSnapshot(state_, PositionNow(), generators));
  saver_->Save(step_, [snapshot] { return Serialize(*snapshot); });
}

RankExit TrainingRank::Train() {
  for (const NamedTensor& parameter : state_.parameters) {
    held_.push_back(at::zeros_like(parameter.second));
  }
  const int every = job_.checkpoint.every;
  while (step_ < job_.steps) {
    context_.log.SetStep(++step_);
    RunStep();
    const bool stop = StopAgreed();
    if (stop) {
      context_.termination.Acting();
      Pass(Point::kTermReceived);
      Log(EventLevel::kWarning, log_events::kTermReceived,
          "SIGTERM: all ranks stop after step " + std::to_string(step_));
    }
    const bool due = every > 0 && (step_ % every == 0 || step_ == job_.steps);
    if (due || stop) Save();
    if (stop) return kRankTerminated;
  }
  OrFail(PublishFile(RankFile(kRankWeightsEnd), WeightBytes(state_), Durability::kBuffered),
         kRankException);
  return kRankOk;
}

RankExit TrainingRank::Finish(RankExit exit) {
  Enter("teardown");
  context_.termination.Acting();
  Pass(Point::kTeardownBegin);
  if (saver_ != nullptr) {
    saver_->Finish(std::nullopt);
    if (!saver_->last_succeeded()) {
      throw RankFailure(kRankCheckpoint, "the last checkpoint of the training is not saved");
    }
    // All ranks have been in the collective of the save, after which nobody reads the mark.
    if (exit == kRankTerminated) ::unlink(StopMark().c_str());
  }
  if (exit == kRankOk) {
    Log(EventLevel::kInfo, log_events::kTrainingFinished, "training is finished",
        {{"steps", job_.steps}});
  }
  context_.workers.reset();
  saver_.reset();
  Pass(Point::kTeardownGroup);
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

std::string TextOf(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

RankExit TrainingRank::Report(const std::exception& error) {
  const std::string text = TextOf(error);
  const auto* own = dynamic_cast<const RankFailure*>(&error);
  const CollectiveFailure failure =
      own != nullptr ? CollectiveFailure::kNone : ClassifyCollectiveFailure(text);
  const auto pending = group_ ? group_->FirstPending() : std::nullopt;
  const double waited_ms = ToMs(MonoNow() - (pending ? pending->called : phase_begin_));
  if (failure == CollectiveFailure::kPeerLost) {
    Log(EventLevel::kError, log_events::kPeerLost,
        "a peer is gone: its connection broke in step " + std::to_string(step_) + " (" + phase_ + ")",
        {{"phase", phase_}, {"error", text}, {"waited_ms", waited_ms}});
    return kRankPeerLost;
  }
  if (failure == CollectiveFailure::kTimeout) {
    const bool joined = group_ != nullptr;
    const Nanoseconds limit = joined ? job_.collective_timeout : job_.startup_timeout;
    Log(EventLevel::kError, log_events::kCollectiveTimeout,
        "a collective did not complete in time in step " + std::to_string(step_) + " (" + phase_ + ")",
        {{"phase", phase_},
         {"collective", pending ? Json(pending->number) : Json(nullptr)},
         {"timeout_ms", std::chrono::duration_cast<Milliseconds>(limit).count()},
         {"waited_ms", waited_ms},
         {"error", text}});
    return kRankCollectiveTimeout;
  }
  RankExit exit = own != nullptr ? own->exit : kRankException;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) exit = kRankOutOfMemory;
  Log(EventLevel::kError, log_events::kRankFailed, "the rank failed: " + text,
      {{"phase", phase_}, {"error", text}, {"exit_code", static_cast<int>(exit)}});
  return exit;
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
  if (group_ != nullptr) {
    const std::string trace = c10d::dump_fr_trace_json(/*includeCollectives=*/true,
                                                       /*onlyActive=*/false);
    const Status written =
        PublishFile(RankFile(kRankFlightRecorder), trace, Durability::kBuffered);
    if (!written) {
      Log(EventLevel::kWarning, log_events::kRankFailed, written.error().message,
          {{"phase", phase_}, {"error", written.error().message}, {"exit_code", exit}});
    }
  }
  return {exit, completed_};
}

}  // namespace

RankResult RunRank(RankContext& context) {
  InstallCountingAllocator();
  // Not destroyed after a failure: the destructors of group and saver may wait for threads that wait
  // for peers, and the process is about to end.
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
