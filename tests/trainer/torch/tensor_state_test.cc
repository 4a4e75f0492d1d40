// The training's state as checkpoint bytes and back, against the reader that knows no torch.
#include "trainer/torch/tensor_state.h"

#include <ATen/Context.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/unique_fd.h"
#include "harness/wire/zip_archive.h"
#include "tests/support/temp_dir.h"
#include "trainer/torch/model.h"

namespace shakedown {
namespace {

using testing::HasSubstr;

// A model after one optimizer step, so that nothing is zero.
struct Training {
  explicit Training(uint64_t seed) {
    at::manual_seed(seed);
    JobConfig job;
    job.hidden = {5, 4};
    model = Mlp(6, job, 3);
    std::vector<at::Tensor> parameters;
    for (const auto& item : model->named_parameters()) {
      state.parameters.emplace_back(item.key(), item.value());
      parameters.push_back(item.value());
    }
    optimizer = std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(0.1));
    state.optimizer = optimizer.get();
    InitializeOptimizerState(state);
    model->Forward(at::rand({2, 6}), model->DrawMasks(2)).sum().backward();
    optimizer->step();
  }
  Snapshot Take() const {
    return TakeSnapshot(state, {30, 1, 96, 7}, {GeneratorState(), GeneratorState()});
  }
  Mlp model{nullptr};
  std::unique_ptr<torch::optim::AdamW> optimizer;
  TrainingState state;
};

TEST(TensorState, ComesBackBitForBit) {
  const Training one(1);
  const StateDigests before = DigestState(one.state);
  const auto saved = Serialize(one.Take());
  ASSERT_TRUE(saved) << saved.error().message;
  Training two(2);
  EXPECT_NE(DigestState(two.state).weights, before.weights);
  at::Tensor rng;
  const auto position = Restore(saved->bytes, two.state, 1, &rng);
  ASSERT_TRUE(position) << position.error().message;
  SetGeneratorState(rng);
  EXPECT_EQ(*position, (Position{30, 1, 96, 7}));
  EXPECT_EQ(DigestState(two.state), before);
}

TEST(TensorState, TensorIOfTheManifestIsRecordDataIOfTheArchive) {
  const Training training(1);
  const Snapshot snapshot = training.Take();
  const auto saved = Serialize(snapshot);
  ASSERT_TRUE(saved) << saved.error().message;
  const auto entries = ReadZipArchive(saved->bytes);
  ASSERT_TRUE(entries) << entries.error().message;
  const auto& tensors = saved->manifest.tensors;
  ASSERT_EQ(tensors.size(), snapshot.tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto record = entries->find("archive/data/" + std::to_string(i));
    ASSERT_NE(record, entries->end()) << i;
    EXPECT_EQ(Xxh3Of(record->second), tensors[i].digest) << tensors[i].name;
  }
}

TEST(TensorState, ASavedCheckpointIsVerifiedWithTheLedgersDigests) {
  const Training training(1);
  const StateDigests state = DigestState(training.state);
  const test_support::TempDir directory;
  const UniqueFd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(PublishCheckpoint(fd.get(), *Serialize(training.Take())));
  const auto found = InspectCheckpoint(fd.get(), 30);
  EXPECT_TRUE(found.verified) << found.why;
  EXPECT_EQ(found.weights, state.weights.digest);
  EXPECT_EQ(found.optimizer, state.optimizer.digest);
  EXPECT_EQ(found.rng.at(0), state.rng.digest);
}

TEST(TensorState, ASnapshotIsNotTouchedByFurtherTraining) {
  Training training(1);
  const Snapshot snapshot = training.Take();
  const Digest128 before = Serialize(snapshot)->manifest.weights;
  training.optimizer->step();
  EXPECT_NE(DigestState(training.state).weights.digest, before);
  EXPECT_EQ(Serialize(snapshot)->manifest.weights, before);
}

// torch.load(weights_only=True) refuses the type tag that torch writes for a dict.
TEST(TensorState, ThePickleHasNoTypeTag) {
  const auto saved = Serialize(Training(1).Take());
  const auto entries = ReadZipArchive(saved->bytes);
  EXPECT_EQ(entries->at("archive/data.pkl").find("restore_type_tag"), std::string_view::npos);
}

TEST(TensorState, WhatDoesNotFitIsRefusedAndChangesNothing) {
  const Training training(1);
  const StateDigests before = DigestState(training.state);
  at::Tensor rng;
  Snapshot missing = training.Take();
  missing.tensors.erase(missing.tensors.begin() + 1);
  EXPECT_THAT(Restore(Serialize(missing)->bytes, training.state, 0, &rng).error().message,
              HasSubstr("is missing"));
  Snapshot reshaped = training.Take();
  reshaped.tensors[0].second = at::zeros({9, 9});
  EXPECT_THAT(Restore(Serialize(reshaped)->bytes, training.state, 0, &rng).error().message,
              HasSubstr("another shape"));
  EXPECT_FALSE(Restore(Serialize(training.Take())->bytes, training.state, 2, &rng));
  EXPECT_FALSE(Restore("not an archive", training.state, 0, &rng));
  EXPECT_EQ(DigestState(training.state), before);
}

TEST(Model, MasksOfPartsAreSlicesOfTheWhole) {
  Training training(1);
  training.model->zero_grad();
  const at::Tensor input = at::rand({8, 6});
  const auto masks = training.model->DrawMasks(8);
  ASSERT_EQ(masks.size(), 2u);
  const at::Tensor whole = training.model->Forward(input, masks);
  const auto half = [&](int64_t begin) {
    std::vector<at::Tensor> slices;
    for (const auto& mask : masks) slices.push_back(mask.narrow(0, begin, 4));
    return training.model->Forward(input.narrow(0, begin, 4), slices);
  };
  EXPECT_TRUE(at::allclose(whole.narrow(0, 0, 4), half(0)));
  EXPECT_TRUE(at::allclose(whole.narrow(0, 4, 4), half(4)));
  EXPECT_FALSE(at::allclose(whole, training.model->Forward(input, training.model->DrawMasks(8))));
}

}  // namespace
}  // namespace shakedown
