// Data parallelism: the process group on Gloo, with fault points around each collective, and the
// Reducer that averages gradients (the engine of DistributedDataParallel). Only for files of
// trainer/torch.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/time.h"
#include "harness/wire/job.h"
#include "trainer/torch/tensor_state.h"

namespace shakedown {

class ObservedBackend;

// A collective that was called and is not known to have completed.
struct PendingCollective {
  int64_t number = 0;  // in this group, from 1
  MonoTime called;
};

// Used by the training thread. Failures of peers come as exceptions of Gloo, as in any program on
// c10d; ClassifyCollectiveFailure tells them apart.
class Group {
 public:
  // `step`: what the fault points of collectives shall say.
  Group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
        Milliseconds collective_timeout, std::function<int64_t()> step);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return group_; }

  // The tensor of each rank, in the order of ranks. All have the same shape.
  std::vector<at::Tensor> AllGather(const at::Tensor& tensor);

  // To be called where everything that was called has completed: passes collective.exit for each.
  void Settle();
  // Collectives called since the group was made.
  int64_t called() const;
  // The first that has not completed well; nullopt when there is none.
  std::optional<PendingCollective> FirstPending() const;

 private:
  c10::intrusive_ptr<ObservedBackend> backend_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

// Averages the gradients of `parameters` over the ranks while backward() runs.
class GradientAverager {
 public:
  // Makes sure that all ranks have the same parameters (rank 0's are broadcast), cuts buckets, and
  // lets `warm_up` (a forward and backward pass whose gradients are thrown away) fix their final
  // order. Without that the first step after a resume would sum in another order than the same step
  // of an uninterrupted run, and differ in bits from 3 ranks on.
  GradientAverager(Group& group, const std::vector<NamedTensor>& parameters, int64_t bucket_bytes,
                   const std::function<void()>& warm_up);
  ~GradientAverager();

  size_t buckets() const { return buckets_; }

  // The next backward pass averages. Without this call gradients only accumulate on this rank
  // (no_sync of DistributedDataParallel).
  void AverageNextBackward();
  // After a backward pass that threw. REQUIRES: it called no collective.
  void AbandonBackward();

 private:
  class TrainingReducer;
  std::shared_ptr<TrainingReducer> reducer_;
  size_t buckets_ = 0;
};

// Gradients to undefined, so that the next backward pass makes new ones.
// (Optimizer::zero_grad of LibTorch 2.11 detaches them in place first, which throws for the views
// into buckets that the Reducer puts there.)
void DropGradients(const std::vector<NamedTensor>& parameters);

}  // namespace shakedown
