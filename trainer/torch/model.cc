#include "trainer/torch/model.h"

#include <string>

namespace shakedown {

MlpImpl::MlpImpl(int64_t inputs, const JobConfig& job, int64_t outputs) : dropout_(job.dropout) {
  int64_t width = inputs;
  const auto add = [&](int64_t next) {
    const std::string name = "layer" + std::to_string(layers_.size());
    layers_.push_back(register_module(name, torch::nn::Linear(width, next)));
    width = next;
  };
  for (const int hidden : job.hidden) add(hidden);
  add(outputs);
}

std::vector<at::Tensor> MlpImpl::DrawMasks(int64_t rows) const {
  std::vector<at::Tensor> masks;
  if (dropout_ == 0) return masks;
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    const int64_t width = layers_[i]->weight.size(0);
    masks.push_back(at::empty({rows, width}).bernoulli_(1 - dropout_).div_(1 - dropout_));
  }
  return masks;
}

at::Tensor MlpImpl::Forward(const at::Tensor& input, const std::vector<at::Tensor>& masks) {
  at::Tensor x = input;
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    x = at::relu(layers_[i]->forward(x));
    if (!masks.empty()) x = x * masks[i];
  }
  return layers_.back()->forward(x);
}

}  // namespace shakedown
