// The training's state as tensors: digests, checkpoint bytes, and back. Only for files of
// trainer/torch.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/adamw.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/base/status.h"
#include "harness/wire/ledger.h"
#include "trainer/checkpoint/publish.h"

namespace shakedown {

using NamedTensor = std::pair<std::string, at::Tensor>;

// Parameters in registration order, with the optimizer that holds their state.
struct TrainingState {
  std::vector<NamedTensor> parameters;
  torch::optim::AdamW* optimizer = nullptr;
};

// Gives each parameter the state that AdamW would make at its first step, so that digests and
// checkpoints of step 0 are as complete as later ones.
void InitializeOptimizerState(const TrainingState& state);

// The default CPU generator: 5056 bytes.
at::Tensor GeneratorState();
void SetGeneratorState(const at::Tensor& bytes);

StateDigests DigestState(const TrainingState& state);
// The bytes of all parameters, one after the other.
std::string WeightBytes(const TrainingState& state);

// Where in the training a state belongs.
struct Position {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t position = 0;  // samples used in the epoch, over all ranks
  uint64_t seed = 0;
  bool operator==(const Position&) const = default;
};

// A copy that further training does not touch. `rng`: the generators of all ranks, in their order.
struct Snapshot {
  Position position;
  std::vector<NamedTensor> tensors;
  int world_size = 0;
};
Snapshot TakeSnapshot(const TrainingState& state, const Position& position,
                      const std::vector<at::Tensor>& rng);

// Any thread. Every tensor has a storage of its own, so tensor i is the archive's record data/i.
Result<SerializedCheckpoint> Serialize(const Snapshot& snapshot);

// Puts the state into parameters and optimizer, and this rank's generator state into `rng`. An
// Error (a tensor is missing, or has another shape or type) leaves them as they were. REQUIRES:
// InitializeOptimizerState was called.
Result<Position> Restore(const std::string& bytes, const TrainingState& state, int rank,
                         at::Tensor* rng);

}  // namespace shakedown
