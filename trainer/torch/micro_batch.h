// Forward and backward pass of a micro-batch, whole or, when memory runs out, in parts. Only for
// files of trainer/torch.
#pragma once

#include <string>
#include <vector>

#include "trainer/rank_progress.h"
#include "trainer/torch/ddp.h"
#include "trainer/torch/model.h"
#include "trainer/torch/tensor_state.h"

namespace shakedown {

struct MicroBatch {
  at::Tensor input;
  at::Tensor labels;
  double weight = 1;   // of its mean loss in the step's
  bool first = false;  // of the step: there are no gradients yet
  bool last = false;   // of the step: its backward pass averages over the ranks
};

// An exception's text without torch's backtrace, which belongs into no log line.
std::string TextOf(const std::exception& error);

class MicroBatchRunner {
 public:
  // What it is given must outlive it.
  MicroBatchRunner(RankProgress& progress, Group& group, GradientAverager& averager, Mlp model,
                   const TrainingState& state)
      : progress_(progress),
        group_(group),
        averager_(averager),
        model_(std::move(model)),
        state_(state) {}

  struct Done {
    double loss = 0;  // mean over the micro-batch
    int parts = 1;    // in how many it was computed
  };
  // Begins with `parts`. When memory runs out, everything is put back as it was before the
  // micro-batch, and it is computed again in twice as many parts. Equal to the whole one up to
  // rounding: parts are weighted by size, use slices of the same dropout masks, and only the last
  // part of the step's last micro-batch averages. Throws RankFailure where that is not possible: a
  // bucket of the step is on its way, or quarters do not fit either.
  Done Run(const MicroBatch& batch, int parts);

  // The line for an allocation that was refused.
  void LogExhausted(const std::exception& error) const;

 private:
  double Try(const MicroBatch& batch, int parts);
  void Recover(const std::exception& error, const MicroBatch& batch, int parts,
               const at::Tensor& generator);
  void HoldGradients(const MicroBatch& batch);

  RankProgress& progress_;
  Group& group_;
  GradientAverager& averager_;
  Mlp model_;
  const TrainingState& state_;

  int64_t called_before_step_ = 0;  // collectives
  std::vector<at::Tensor> held_;    // gradients before the micro-batch; unused for the first
};

}  // namespace shakedown
