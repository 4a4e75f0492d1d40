#include "trainer/torch/ddp.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "injectors/probe/probe.h"

namespace shakedown {

// Passes the fault points around each collective of the inner backend.
//
// The Reducer calls from inside its autograd hook, on the training thread, with its mutex held;
// what stalls here stalls like a rank that never joins.
class ObservedBackend final : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  ObservedBackend(c10::intrusive_ptr<c10d::Backend> inner, std::function<int64_t()> step)
      : Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        step_(std::move(step)) {}

  const std::string getBackendName() const override { return inner_->getBackendName(); }
  c10::intrusive_ptr<Options> getBackendOptions() override { return inner_->getBackendOptions(); }
  void setTimeout(std::chrono::milliseconds timeout) override { inner_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override { inner_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return inner_->getSequenceNumberForGroup(); }
  void setGroupUid(const std::string& uid) override {
    Backend::setGroupUid(uid);
    inner_->setGroupUid(uid);
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return Observe([&] { return inner_->broadcast(tensors, options); });
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return Observe([&] { return inner_->allreduce(tensors, options); });
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return Observe([&] { return inner_->allgather(outputs, inputs, options); });
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return Observe([&] { return inner_->barrier(options); });
  }

  void Settle() {
    for (; !pending_.empty(); pending_.pop_front()) Pass(Point::kCollectiveExit);
  }

  int64_t called() const { return called_; }

  std::optional<PendingCollective> FirstPending() const {
    for (const auto& [collective, work] : pending_) {
      if (!work->isCompleted() || !work->isSuccess()) return collective;
    }
    return std::nullopt;
  }

 private:
  template <typename Call>
  WorkPtr Observe(Call call) {
    const PendingCollective collective{++called_, MonoNow()};
    probe::CollectiveEntered();
    Pass(Point::kCollectiveEnter);
    WorkPtr work = call();
    pending_.emplace_back(collective, work);
    probe::CollectiveEnqueued();
    Pass(Point::kCollectiveEnqueued);
    return work;
  }

  void Pass(Point point) { probe::Pass(point, static_cast<uint32_t>(step_())); }

  const c10::intrusive_ptr<c10d::Backend> inner_;
  const std::function<int64_t()> step_;
  int64_t called_ = 0;
  std::deque<std::pair<PendingCollective, WorkPtr>> pending_;
};

namespace {

c10::intrusive_ptr<c10d::Backend> MakeGloo(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                           int world_size, const std::string& name,
                                           Milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  // Without these two the flight recorder does not say which group an entry is of.
  options->group_name = name;
  for (int r = 0; r < world_size; ++r) {
    options->global_ranks_in_group.push_back(static_cast<uint64_t>(r));
  }
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, world_size, options);
}

}  // namespace

Group::Group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
             Milliseconds collective_timeout, std::function<int64_t()> step) {
  const std::string name = "data_parallel";
  const auto prefixed = c10::make_intrusive<c10d::PrefixStore>(name, store);
  backend_ = c10::make_intrusive<ObservedBackend>(
      MakeGloo(prefixed, rank, world_size, name, collective_timeout), std::move(step));
  group_ = c10::make_intrusive<c10d::ProcessGroup>(prefixed, rank, world_size);
  // CUSTOM, not GLOO: c10d casts the backend of a GLOO group to ProcessGroupGloo.
  const auto type = c10d::ProcessGroup::BackendType::CUSTOM;
  group_->setBackend(c10::DeviceType::CPU, type, backend_);
  group_->setDefaultBackend(type);
  group_->setGroupName(name);
  group_->setGroupDesc(name);
}

Group::~Group() = default;

std::vector<at::Tensor> Group::AllGather(const at::Tensor& tensor) {
  std::vector<at::Tensor> inputs{tensor};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int r = 0; r < group_->getSize(); ++r) outputs[0].push_back(at::empty_like(tensor));
  group_->allgather(outputs, inputs)->wait();
  Settle();
  return outputs[0];
}

void Group::Settle() { backend_->Settle(); }
int64_t Group::called() const { return backend_->called(); }
std::optional<PendingCollective> Group::FirstPending() const { return backend_->FirstPending(); }

// The Reducer has no way back from a backward pass that threw but reset_state, which begins a new
// rebuild of the buckets on this rank alone. What has to be undone is what prepare_for_backward and
// the first hook set; the rest is reset by the next prepare_for_backward.
class GradientAverager::TrainingReducer : public c10d::Reducer {
 public:
  using c10d::Reducer::Reducer;
  void AbandonBackward() {
    const std::lock_guard lock(mutex_);
    expect_autograd_hooks_ = false;
    require_finalize_ = false;
    first_autograd_hook_called_ = false;
  }
  size_t buckets() const { return buckets_.size(); }
};

GradientAverager::GradientAverager(Group& group, const std::vector<NamedTensor>& parameters,
                                   int64_t bucket_bytes, const std::function<void()>& warm_up) {
  std::vector<at::Tensor> tensors;
  std::vector<at::Tensor> values;
  std::unordered_map<size_t, std::string> names;
  for (const auto& [name, parameter] : parameters) {
    names[tensors.size()] = name;
    tensors.push_back(parameter);
    values.push_back(parameter.detach());
  }
  c10d::verify_params_across_processes(group.process_group(), tensors, std::nullopt);
  constexpr size_t kBroadcastBufferBytes = size_t{250} << 20;  // as DistributedDataParallel
  c10d::broadcast_coalesced(group.process_group(), values, kBroadcastBufferBytes, /*rank=*/0);

  const std::vector<bool> sparse(tensors.size(), false);
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(tensors, {static_cast<size_t>(bucket_bytes)}, sparse);
  // Gradients arrive from the last layer on.
  std::reverse(buckets.begin(), buckets.end());
  reducer_ = std::make_shared<TrainingReducer>(
      tensors, buckets, group.process_group(), sparse, bucket_bytes,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true, names,
      /*first_bucket_bytes_cap=*/bucket_bytes, /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<int64_t>{});

  AverageNextBackward();
  warm_up();
  DropGradients(parameters);
  reducer_->rebuild_buckets();
  buckets_ = reducer_->buckets();
  group.Settle();
}

GradientAverager::~GradientAverager() = default;

void GradientAverager::AverageNextBackward() {
  reducer_->prepare_for_forward();
  // No outputs: every parameter takes part, so there is no search for unused ones.
  reducer_->prepare_for_backward({});
}

void GradientAverager::AbandonBackward() { reducer_->AbandonBackward(); }

void DropGradients(const std::vector<NamedTensor>& parameters) {
  for (const auto& [name, parameter] : parameters) parameter.mutable_grad().reset();
}

}  // namespace shakedown
