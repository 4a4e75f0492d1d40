#include "trainer/torch/micro_batch.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>

#include "harness/wire/log_events.h"
#include "trainer/defects/defect.h"
#include "trainer/torch/memory.h"

namespace shakedown {
namespace {

// Splitting goes no further: a micro-batch that does not fit in quarters will not fit in eighths.
constexpr int kMostParts = 4;

}  // namespace

std::string TextOf(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

MicroBatchRunner::Done MicroBatchRunner::Run(const MicroBatch& batch, int parts) {
  HoldGradients(batch);
  const at::Tensor generator = GeneratorState();
  for (int now = parts;; now *= 2) {
    try {
      const double loss = Try(batch, now);
      if (now > parts) {
        progress_.Log(EventLevel::kWarning, log_events::kMemorySplit,
                      "the micro-batch was computed in " + std::to_string(now) + " parts",
                      {{"parts", now}});
      }
      return {loss, now};
    } catch (const c10::OutOfMemoryError& error) {
      Recover(error, batch, now, generator);
      if (Planted(Defect::kDropsBatchWhenOutOfMemory)) {
        MicroBatch weightless = batch;
        weightless.weight = 0;
        return {Try(weightless, now), now};
      }
    }
  }
}

// Should memory run out, the gradients so far must come back exactly; computing them again would
// need the batches before.
void MicroBatchRunner::HoldGradients(const MicroBatch& batch) {
  if (batch.first) {
    called_before_step_ = group_.called();
    return;
  }
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    const at::Tensor& gradient = state_.parameters[i].second.grad();
    if (held_.size() == i) held_.push_back(at::empty_like(gradient));
    held_[i].copy_(gradient);
  }
}

double MicroBatchRunner::Try(const MicroBatch& batch, int parts) {
  const int64_t rows = batch.input.size(0);
  std::vector<at::Tensor> masks;
  double loss = 0;
  for (int part = 0; part < parts; ++part) {
    const int64_t begin = rows * part / parts;
    const int64_t size = rows * (part + 1) / parts - begin;
    const double share = static_cast<double>(size) / static_cast<double>(rows);
    progress_.Enter("forward");
    progress_.Pass(Point::kForwardBegin);
    if (part == 0) masks = model_->DrawMasks(rows);
    std::vector<at::Tensor> slices;
    for (const at::Tensor& mask : masks) slices.push_back(mask.narrow(0, begin, size));
    const at::Tensor logits = model_->Forward(batch.input.narrow(0, begin, size), slices);
    const at::Tensor mean =
        at::nll_loss(at::log_softmax(logits, 1), batch.labels.narrow(0, begin, size));
    const at::Tensor contribution = mean * (batch.weight * share);
    probe::EndMemoryPhase();
    loss += share * double{mean.item<float>()};

    progress_.Enter("backward");
    progress_.Pass(Point::kBackwardBegin);
    if (batch.last && part + 1 == parts) averager_.AverageNextBackward();
    contribution.backward();
  }
  group_.Settle();
  return loss;
}

void MicroBatchRunner::LogExhausted(const std::exception& error) const {
  const RefusedAllocation refused = LastRefused();
  progress_.Log(
      EventLevel::kError, log_events::kMemoryExhausted,
      "out of memory in step " + std::to_string(progress_.step()) + " (" + progress_.phase() + ")",
      {{"phase", progress_.phase()},
       {"requested_bytes", refused.requested_bytes},
       {"in_use_bytes", refused.in_use_bytes},
       {"limit_bytes", nullptr},
       {"error", TextOf(error)}});
}

// Generator, gradients and Reducer as before the micro-batch.
void MicroBatchRunner::Recover(const std::exception& error, const MicroBatch& batch, int parts,
                               const at::Tensor& generator) {
  LogExhausted(error);
  // A bucket that is on its way cannot be called back, and the peers would take a second one for
  // that of another step.
  if (group_.called() != called_before_step_) {
    throw RankFailure(kRankOutOfMemory,
                      "out of memory after a bucket of the step was launched: cannot retry");
  }
  const int next = parts * 2;
  if (next > kMostParts || next > batch.input.size(0)) {
    throw RankFailure(kRankOutOfMemory, "out of memory even with the micro-batch in " +
                                            std::to_string(parts) + " parts");
  }
  averager_.AbandonBackward();
  SetGeneratorState(generator);
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    state_.parameters[i].second.mutable_grad() = batch.first ? at::Tensor() : held_[i].clone();
  }
}

}  // namespace shakedown
