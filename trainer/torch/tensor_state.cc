#include "trainer/torch/tensor_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/utils.h>

#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "trainer/defects/defect.h"

namespace shakedown {
namespace {

using torch::optim::AdamWParamState;

AdamWParamState& StateOf(torch::optim::AdamW& optimizer, const at::Tensor& parameter) {
  return static_cast<AdamWParamState&>(*optimizer.state().at(parameter.unsafeGetTensorImpl()));
}

std::string_view BytesOf(const at::Tensor& tensor) {
  SHAKEDOWN_ASSERT(tensor.is_contiguous());
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

SizedDigest Finish(const Xxh3& hash) {
  const Result<Digest128> digest = hash.Finish();
  SHAKEDOWN_ASSERT(digest.has_value());  // a model without parameters cannot be made
  return {*digest, hash.bytes()};
}

at::Tensor Scalar(int64_t value) { return at::scalar_tensor(value, at::kLong); }

at::Tensor OwnCopy(const at::Tensor& tensor) {
  return tensor.detach().clone(at::MemoryFormat::Contiguous);
}

std::string TypeName(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return "float32";
    case at::kLong:
      return "int64";
    default:
      SHAKEDOWN_ASSERT(tensor.scalar_type() == at::kByte);
      return "uint8";
  }
}

c10::IValue ToTuple(const std::vector<NamedTensor>& tensors) {
  // A tuple of pairs and not a dict: for a dict torch writes a type tag that
  // torch.load(weights_only=True) refuses.
  std::vector<c10::IValue> pairs;
  pairs.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    pairs.emplace_back(c10::ivalue::Tuple::create({c10::IValue(name), c10::IValue(tensor)}));
  }
  return c10::ivalue::Tuple::create(std::move(pairs));
}

std::map<std::string, at::Tensor> FromTuple(const c10::IValue& value) {
  std::map<std::string, at::Tensor> tensors;
  for (const c10::IValue& pair : value.toTupleRef().elements()) {
    const auto& elements = pair.toTupleRef().elements();
    tensors.emplace(elements.at(0).toStringRef(), elements.at(1).toTensor());
  }
  return tensors;
}

// The manifest's part that only the tensors know.
CheckpointManifest Describe(const Snapshot& snapshot) {
  CheckpointManifest manifest;
  manifest.step = snapshot.position.step;
  manifest.epoch = snapshot.position.epoch;
  manifest.position = snapshot.position.position;
  manifest.world_size = snapshot.world_size;
  Xxh3 weights;
  Xxh3 optimizer;
  for (const auto& [name, tensor] : snapshot.tensors) {
    const std::string_view bytes = BytesOf(tensor);
    const Digest128 digest = Xxh3Of(bytes);
    manifest.tensors.push_back(
        {name, TypeName(tensor), tensor.sizes().vec(), static_cast<int64_t>(bytes.size()), digest});
    if (name.starts_with("model.")) weights.Update(bytes);
    if (name.starts_with("optim.")) optimizer.Update(bytes);
    if (name.starts_with("rng.")) manifest.rng.push_back(digest);
  }
  manifest.weights = Finish(weights).digest;
  manifest.optimizer = Finish(optimizer).digest;
  return manifest;
}

// Takes tensors out of a loaded checkpoint; the first that is missing or does not fit is kept.
struct Taker {
  std::map<std::string, at::Tensor> tensors;
  std::string wrong;

  at::Tensor Take(const std::string& name, const at::Tensor& like) {
    const auto it = tensors.find(name);
    if (it == tensors.end()) {
      Complain("tensor '" + name + "' is missing");
      return like;
    }
    if (it->second.sizes() != like.sizes() || it->second.scalar_type() != like.scalar_type()) {
      Complain("tensor '" + name + "' has another shape or type than the model's");
    }
    return it->second;
  }
  void Complain(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  }
};

struct Loaded {
  at::Tensor weight;
  at::Tensor step;
  at::Tensor exp_avg;
  at::Tensor exp_avg_sq;
};

Result<Position> RestoreChecked(Taker taker, const TrainingState& state, int rank,
                                at::Tensor* rng) {
  std::vector<Loaded> loaded;
  for (const auto& [name, parameter] : state.parameters) {
    const std::string key = "optim." + name;
    loaded.push_back({taker.Take("model." + name, parameter), taker.Take(key + ".step", Scalar(0)),
                      taker.Take(key + ".exp_avg", parameter),
                      taker.Take(key + ".exp_avg_sq", parameter)});
  }
  const at::Tensor generator = taker.Take("rng." + std::to_string(rank), GeneratorState());
  const at::Tensor position =
      taker.Take("position", at::empty({4}, at::TensorOptions().dtype(at::kLong)));
  if (!taker.wrong.empty()) return Fail(taker.wrong);
  for (size_t i = 0; i < loaded.size(); ++i) {
    at::Tensor parameter = state.parameters[i].second;
    parameter.copy_(loaded[i].weight);
    AdamWParamState& adam = StateOf(*state.optimizer, parameter);
    if (Planted(Defect::kMomentsSwapped)) std::swap(loaded[i].exp_avg, loaded[i].exp_avg_sq);
    adam.step(loaded[i].step.item<int64_t>() + (Planted(Defect::kOptimizerStepOffByOne) ? 1 : 0));
    adam.exp_avg(OwnCopy(loaded[i].exp_avg));
    adam.exp_avg_sq(OwnCopy(loaded[i].exp_avg_sq));
  }
  *rng = OwnCopy(generator);
  const auto* values = position.const_data_ptr<int64_t>();
  return Position{values[0], values[1], values[2], static_cast<uint64_t>(values[3])};
}

}  // namespace

void InitializeOptimizerState(const TrainingState& state) {
  for (const auto& [name, parameter] : state.parameters) {
    auto adam = std::make_unique<AdamWParamState>();
    adam->step(0);
    adam->exp_avg(at::zeros_like(parameter, at::MemoryFormat::Preserve));
    adam->exp_avg_sq(at::zeros_like(parameter, at::MemoryFormat::Preserve));
    state.optimizer->state()[parameter.unsafeGetTensorImpl()] = std::move(adam);
  }
}

at::Tensor GeneratorState() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void SetGeneratorState(const at::Tensor& bytes) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(bytes);
}

StateDigests DigestState(const TrainingState& state) {
  Xxh3 weights;
  Xxh3 optimizer;
  Xxh3 rng;
  for (const auto& [name, parameter] : state.parameters) {
    weights.Update(BytesOf(parameter));
    const AdamWParamState& adam = StateOf(*state.optimizer, parameter);
    const int64_t step = adam.step();
    optimizer.Update(&step, sizeof step);
    optimizer.Update(BytesOf(adam.exp_avg()));
    optimizer.Update(BytesOf(adam.exp_avg_sq()));
  }
  rng.Update(BytesOf(GeneratorState()));
  return {Finish(weights), Finish(optimizer), Finish(rng)};
}

std::string WeightBytes(const TrainingState& state) {
  std::string bytes;
  for (const auto& [name, parameter] : state.parameters) bytes += BytesOf(parameter);
  return bytes;
}

Snapshot TakeSnapshot(const TrainingState& state, const Position& position,
                      const std::vector<at::Tensor>& rng) {
  Snapshot snapshot{position, {}, static_cast<int>(rng.size())};
  for (const auto& [name, parameter] : state.parameters) {
    at::Tensor copy = OwnCopy(parameter);
    if (Planted(Defect::kRoundsToBfloat16)) copy = copy.to(at::kBFloat16).to(at::kFloat);
    snapshot.tensors.emplace_back("model." + name, std::move(copy));
  }
  for (const auto& [name, parameter] : state.parameters) {
    const AdamWParamState& adam = StateOf(*state.optimizer, parameter);
    const std::string key = "optim." + name;
    snapshot.tensors.emplace_back(key + ".step", Scalar(adam.step()));
    snapshot.tensors.emplace_back(key + ".exp_avg", OwnCopy(adam.exp_avg()));
    snapshot.tensors.emplace_back(key + ".exp_avg_sq", OwnCopy(adam.exp_avg_sq()));
  }
  for (size_t rank = 0; rank < rng.size(); ++rank) {
    snapshot.tensors.emplace_back("rng." + std::to_string(rank), OwnCopy(rng[rank]));
  }
  snapshot.tensors.emplace_back("position",
                                at::tensor({position.step, position.epoch, position.position,
                                            static_cast<int64_t>(position.seed)},
                                           at::TensorOptions().dtype(at::kLong)));
  return snapshot;
}

Result<SerializedCheckpoint> Serialize(const Snapshot& snapshot) {
  try {
    CheckpointManifest manifest = Describe(snapshot);
    if (Planted(Defect::kManifestOfOtherContent)) snapshot.tensors[0].second.zero_();
    const std::vector<char> bytes = torch::jit::pickle_save(ToTuple(snapshot.tensors));
    return SerializedCheckpoint{std::string(bytes.begin(), bytes.end()), std::move(manifest)};
  } catch (const std::exception& e) {
    return Fail(std::string("cannot serialize the checkpoint: ") + e.what());
  }
}

Result<Position> Restore(const std::string& bytes, const TrainingState& state, int rank,
                         at::Tensor* rng) {
  try {
    const at::NoGradGuard no_grad;
    // Kept in a variable: the elements of a temporary would dangle.
    const c10::IValue value =
        torch::jit::pickle_load(std::vector<char>(bytes.begin(), bytes.end()));
    return RestoreChecked({FromTuple(value), {}}, state, rank, rng);
  } catch (const std::exception& e) {
    return Fail(std::string("it is no tuple of named tensors: ") + e.what());
  }
}

}  // namespace shakedown
