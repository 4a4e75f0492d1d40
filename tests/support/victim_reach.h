// Injectors' hands on a small job of victim programs: what harness/run is for a real one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/process/spawn.h"
#include "harness/wire/scenario.h"
#include "injectors/injector.h"
#include "injectors/reach.h"
#include "tests/support/control_double.h"
#include "tests/support/private_tmpfs.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {

struct VictimOptions {
  std::string program;                 // in tests/victims
  std::vector<std::string> arguments;  // after those that VictimReach gives
  int ranks = 3;
  std::optional<int64_t> private_fs_bytes;  // the target saves on a filesystem of its own
  // Arms the others as well, without a hold: what a bystander witness has to find.
  std::optional<ArmSpec> arm_bystanders;
};

class VictimReach : public Reach {
 public:
  // Starts the victims, with the injection's arm in the page of rank `injection.rank`, and returns
  // when all have said hello and, unless they are workers, joined. Victims get: a file for their
  // collectives, the number of ranks, a directory for checkpoints.
  static Result<std::unique_ptr<VictimReach>> Start(const VictimOptions& options,
                                                    const Injection& injection, const ArmSpec& arm);
  ~VictimReach() override;  // ends and reaps them all

  Result<HeldMessage> AwaitHeld() { return met_[target_]->AwaitHeld(); }
  Status Release(bool act) { return met_[target_]->Release(0, act); }
  ProgressPage* MutablePage(const ProcessRef& process) const { return Of(process).page; }
  ArmState TargetArm() const {
    return static_cast<ArmState>(met_[target_]->page()->control.arms[0].state.load());
  }
  // Whether the arms of all bystanders have matched.
  bool BystandersWereHit() const;
  std::filesystem::path CheckpointOf(int rank) const;

  ProcessRef target() const override { return Ref(target_); }
  std::vector<ProcessRef> bystanders() const override;
  Status Signal(const ProcessRef& process, int signal) override;
  std::optional<WaitStatus> Exit(const ProcessRef& process) const override;
  char State(const ProcessRef& process) const override;
  const PageObserved* Page(const ProcessRef& process) const override;
  int CheckpointDirectory() const override;
  std::string CheckpointPath() const override;
  std::optional<ProcessIdentity> CheckpointHolder() const override;
  bool CheckpointFilesystemIsPrivate() const override { return private_fs_ != nullptr; }
  int RunDirectory() const override { return run_directory_.get(); }

 private:
  struct Victim {
    SpawnedProcess process;
    ProgressPage* page = nullptr;
    mutable std::optional<WaitStatus> exit;  // reaped
  };

  VictimReach() = default;
  Status StartOne(const VictimOptions& options, const Injection& injection, const ArmSpec& arm,
                  int rank);
  const Victim& Of(const ProcessRef& process) const;
  ProcessRef Ref(size_t index) const;

  TempDir directory_;
  UniqueFd run_directory_;
  UniqueFd checkpoint_directory_;  // when there is no private filesystem
  std::unique_ptr<PrivateTmpfs> private_fs_;
  std::unique_ptr<ControlDouble> control_;
  std::vector<std::unique_ptr<MetProcess>> met_;  // by rank
  std::vector<Victim> victims_;                   // by rank
  std::optional<int> worker_;
  size_t target_ = 0;
};

}  // namespace shakedown::test_support
