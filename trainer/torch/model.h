// The model: a multilayer perceptron with ReLU and dropout. Only for files of trainer/torch.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "harness/wire/job.h"

namespace shakedown {

class MlpImpl : public torch::nn::Module {
 public:
  // Draws the weights from the default generator.
  MlpImpl(int64_t inputs, const JobConfig& job, int64_t outputs);

  // One dropout mask per hidden layer for `rows` samples, drawn in the order of the layers from the
  // default generator; kept values are scaled by 1 / (1 - p). Masks are drawn apart from the
  // forward pass so that a micro-batch that is computed in parts uses slices of the masks that it
  // would have used whole. Empty without dropout.
  std::vector<at::Tensor> DrawMasks(int64_t rows) const;

  // Logits. `masks` as from DrawMasks with as many rows as `input`, or empty for no dropout.
  at::Tensor Forward(const at::Tensor& input, const std::vector<at::Tensor>& masks);

 private:
  const double dropout_;
  std::vector<torch::nn::Linear> layers_;
};
TORCH_MODULE(Mlp);

}  // namespace shakedown
