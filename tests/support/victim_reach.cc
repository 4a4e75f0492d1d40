#include "tests/support/victim_reach.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "harness/base/file.h"
#include "harness/wire/environment.h"

namespace shakedown::test_support {
namespace {

std::string Variable(const char* name, const std::string& value) {
  return std::string(name) + "=" + value;
}

ArmFields FieldsOf(const Injection& injection, const ArmSpec& arm, bool hold) {
  return {.point = injection.point,
          .step = static_cast<uint32_t>(injection.step),
          .occurrence = static_cast<uint32_t>(injection.occurrence),
          .flags = (hold ? kArmHold : 0u) | (arm.repeat ? kArmRepeat : 0u),
          .action = arm.action,
          .argument = arm.argument,
          .id = static_cast<uint32_t>(injection.id)};
}

}  // namespace

Result<std::unique_ptr<VictimReach>> VictimReach::Start(const VictimOptions& options,
                                                        const Injection& injection,
                                                        const ArmSpec& arm) {
  std::unique_ptr<VictimReach> reach(new VictimReach);
  reach->target_ = static_cast<size_t>(injection.rank);
  reach->worker_ = injection.worker;
  reach->run_directory_.Reset(
      ::open(reach->directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int rank = 0; rank < options.ranks; ++rank) {
    SHAKEDOWN_TRY(MakeDirectories(reach->CheckpointOf(rank)));
  }
  const std::string saves = reach->CheckpointOf(injection.rank);
  if (options.private_fs_bytes) {
    auto made = PrivateTmpfs::Make(saves, *options.private_fs_bytes);
    if (!made) return tl::unexpected(made.error());
    reach->private_fs_ = *std::move(made);
  }
  reach->checkpoint_directory_.Reset(::open(saves.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto control = ControlDouble::Listen();
  if (!control) return tl::unexpected(control.error());
  reach->control_ = *std::move(control);
  for (int rank = 0; rank < options.ranks; ++rank) {
    SHAKEDOWN_TRY(reach->StartOne(options, injection, arm, rank));
  }
  return reach;
}

Status VictimReach::StartOne(const VictimOptions& options, const Injection& injection,
                             const ArmSpec& arm, int rank) {
  const bool is_target = rank == injection.rank;
  SpawnOptions spawn;
  spawn.argv = {SHAKEDOWN_BINARY_DIR "/tests/victims/victim-" + options.program,
                directory_.path() / "collectives", std::to_string(options.ranks),
                CheckpointOf(rank)};
  spawn.argv.insert(spawn.argv.end(), options.arguments.begin(), options.arguments.end());
  spawn.environment = {Variable(env::kControlSocket, control_->path()),
                       Variable(env::kRank, std::to_string(rank)), Variable(env::kReference, "1")};
  if (injection.worker) {
    spawn.environment.push_back(Variable(env::kWorker, std::to_string(*injection.worker)));
  }
  spawn.descriptors = {{2, 2}};
  if (is_target && private_fs_) {
    spawn.mount_namespace_fd = private_fs_->mount_namespace();
    spawn.user_namespace_fd = private_fs_->user_namespace();
  }
  Result<SpawnedProcess> process = Spawn(spawn);
  if (!process) return tl::unexpected(process.error());
  victims_.push_back({*std::move(process), nullptr, std::nullopt});
  auto met = control_->Meet([&](const HelloMessage&, ProgressPage* page) {
    if (is_target) {
      PutArm(page, 0, FieldsOf(injection, arm, /*hold=*/true));
    } else if (options.arm_bystanders) {
      PutArm(page, 0, FieldsOf(injection, *options.arm_bystanders, /*hold=*/false));
    }
  });
  if (!met) return tl::unexpected(met.error());
  SHAKEDOWN_ASSERT((*met)->identity() == victims_.back().process.identity);
  victims_.back().page = (*met)->page();
  if (!injection.worker) {
    if (const auto joined = (*met)->AwaitJoined(); !joined) return tl::unexpected(joined.error());
  }
  met_.push_back(*std::move(met));
  return {};
}

VictimReach::~VictimReach() {
  for (Victim& victim : victims_) {
    if (victim.exit) continue;
    (void)SignalPidfd(victim.process.pidfd.get(), SIGKILL);
    (void)Wait(victim.process.pidfd.get());
  }
}

bool VictimReach::BystandersWereHit() const {
  for (size_t i = 0; i < met_.size(); ++i) {
    const auto state = static_cast<ArmState>(met_[i]->page()->control.arms[0].state.load());
    if (i != target_ && state == ArmState::kArmed) return false;
  }
  return true;
}

std::filesystem::path VictimReach::CheckpointOf(int rank) const {
  return directory_.path() / ("checkpoint-" + std::to_string(rank));
}

ProcessRef VictimReach::Ref(size_t index) const {
  return {victims_[index].process.identity, static_cast<int>(index), worker_};
}

std::vector<ProcessRef> VictimReach::bystanders() const {
  std::vector<ProcessRef> others;
  for (size_t i = 0; i < victims_.size(); ++i) {
    if (i != target_) others.push_back(Ref(i));
  }
  return others;
}

const VictimReach::Victim& VictimReach::Of(const ProcessRef& process) const {
  const Victim& victim = victims_.at(static_cast<size_t>(process.rank));
  SHAKEDOWN_ASSERT(victim.process.identity == process.identity);
  return victim;
}

Status VictimReach::Signal(const ProcessRef& process, int signal) {
  return SignalPidfd(Of(process).process.pidfd.get(), signal);
}

std::optional<WaitStatus> VictimReach::Exit(const ProcessRef& process) const {
  const Victim& victim = Of(process);
  if (!victim.exit) {
    const auto status = TryWait(victim.process.pidfd.get());
    if (status) victim.exit = *status;
  }
  return victim.exit;
}

char VictimReach::State(const ProcessRef& process) const {
  if (Of(process).exit) return '-';
  const Result<ProcessStat> stat = ReadProcessStat(process.identity.pid);
  return stat && stat->start_time == process.identity.start_time ? stat->state : '-';
}

const PageObserved* VictimReach::Page(const ProcessRef& process) const {
  return &Of(process).page->observed;
}

int VictimReach::CheckpointDirectory() const {
  return private_fs_ ? private_fs_->directory() : checkpoint_directory_.get();
}

std::string VictimReach::CheckpointPath() const { return CheckpointOf(static_cast<int>(target_)); }

std::optional<ProcessIdentity> VictimReach::CheckpointHolder() const {
  if (!private_fs_) return std::nullopt;
  return private_fs_->holder();
}

}  // namespace shakedown::test_support
