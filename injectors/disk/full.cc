// disk.full: the checkpoint filesystem has no space left when a checkpoint is about to be written.
//
// Two means. "private tmpfs": the checkpoint directory lies on a small filesystem of this run,
// which a ballast file fills up. "probe": the write that follows is answered with ENOSPC.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "harness/wire/checkpoint_format.h"
#include "injectors/catalog.h"
#include "injectors/injector.h"
#include "injectors/primitives/ballast.h"
#include "injectors/primitives/page_watch.h"
#include "injectors/primitives/params.h"

namespace shakedown::faults {
namespace {

constexpr std::string_view kPrivateTmpfs = "private tmpfs";
constexpr std::string_view kProbe = "probe";

struct SaveError {
  int error;
  int64_t step;
};
SaveError SaveErrorOf(const PageObserved& page) {
  const uint64_t word = page.checkpoint_error.load(std::memory_order_relaxed);
  return {static_cast<int>(word >> 32), static_cast<int64_t>(word & 0xFFFFFFFF)};
}

Json Describe(const SaveError& error) {
  if (error.error == 0) return nullptr;
  return {{"errno", DescribeErrno(error.error)}, {"checkpoint", error.step}};
}

bool Exists(int directory, const std::string& name) {
  return ::faccessat(directory, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// What both means have in common: what the job meets, and that it meets it alone.
class DiskFull : public Injector {
 public:
  explicit DiskFull(Injection injection) : injection_(std::move(injection)) {}

  Witness Bystander(Reach& reach) override {
    Witness witness;
    witness.what = "failed saves of the other ranks, and space left where evidence goes";
    witness.observed = Json::object();
    witness.expected = "no failed save, and space left";
    witness.holds = save_failed_;
    for (const ProcessRef& other : reach.bystanders()) {
      const SaveError error = SaveErrorOf(*reach.Page(other));
      witness.observed[shakedown::Describe(other)] = Describe(error);
      if (error.error != 0) witness.holds = false;
    }
    if (reach.RunDirectory() >= 0) {
      const Result<FilesystemSpace> space = SpaceOf(reach.RunDirectory());
      const int64_t left = space ? space->available_bytes : 0;
      witness.observed["run_directory_bytes"] = left;
      if (left <= 0) witness.holds = false;
    }
    return witness;
  }

 protected:
  const Injection& injection() const { return injection_; }

  // The error that the rank met, as its page tells; once seen, a later save does not take it back.
  bool LookForSaveError(Reach& reach, Json* observed) {
    const SaveError error = SaveErrorOf(*reach.Page(reach.target()));
    *observed = Describe(error);
    // The page keeps the last failed save only: a job that saves faster than it is looked at has
    // failed at a later one meanwhile.
    if (error.error == ENOSPC && error.step >= injection_.step) save_failed_ = true;
    return save_failed_;
  }

  bool Published(Reach& reach) const {
    return Exists(reach.CheckpointDirectory(), CheckpointManifestName(injection_.step));
  }

  Json ExpectedError() const { return Describe(SaveError{ENOSPC, injection_.step}); }

 private:
  Injection injection_;
  bool save_failed_ = false;
};

class FullFilesystem : public DiskFull {
 public:
  explicit FullFilesystem(Injection injection)
      : DiskFull(std::move(injection)), size_(IntParam(this->injection().with, "size")) {}

  std::optional<int64_t> PrivateFilesystemBytes() const override { return size_; }

  Result<UndoRecipe> Prepare(Reach& reach) override {
    SHAKEDOWN_TRY(TargetIsAlive(reach));
    SHAKEDOWN_TRY(FilesystemIsOurs(reach));
    Result<std::string> name = NewBallastName(injection().id);
    if (!name) return tl::unexpected(name.error());
    name_ = *name;
    return UndoRecipe{{.verb = UndoVerb::kRemoveBallast,
                       .path = reach.CheckpointPath() + "/" + name_,
                       .process = reach.CheckpointHolder()}};
  }

  Result<Json> Inject(Reach& reach) override {
    const Result<int64_t> bytes = FillFilesystem(reach.CheckpointDirectory(), name_);
    if (!bytes) return tl::unexpected(bytes.error());
    return Json{{"path", reach.CheckpointPath() + "/" + name_}, {"bytes", *bytes}};
  }

  bool EffectBeforeRelease() const override { return true; }

  Witness Effect(Reach& reach) override {
    const Result<FilesystemSpace> space = SpaceOf(reach.CheckpointDirectory());
    const int error = TryToWrite(reach.CheckpointDirectory());
    Witness witness;
    witness.what = "space left for checkpoints, and the answer to writing one byte";
    witness.observed = {{"available_bytes", space ? Json(space->available_bytes) : Json(nullptr)},
                        {"write", error == 0 ? "succeeded" : DescribeErrno(error)}};
    witness.expected = {{"available_bytes", 0}, {"write", DescribeErrno(ENOSPC)}};
    witness.unit = "bytes";
    witness.holds = space && space->available_bytes == 0 && error == ENOSPC;
    return witness;
  }

  Witness Consequence(Reach& reach) override {
    Witness witness;
    Json error;
    witness.what = "what " + shakedown::Describe(reach.target()) + " met when it saved";
    // Not whether it published all the same: that is the job's doing, for the checks to judge.
    witness.holds = LookForSaveError(reach, &error);
    witness.observed = {{"error", error}};
    witness.expected = {{"error", ExpectedError()}};
    return witness;
  }

  Witness Undone(Reach& reach) override {
    const Result<FilesystemSpace> space = SpaceOf(reach.CheckpointDirectory());
    const bool ballast = !name_.empty() && Exists(reach.CheckpointDirectory(), name_);
    Witness witness;
    witness.what = "space left for checkpoints, and whether the ballast is there";
    witness.observed = {{"available_bytes", space ? Json(space->available_bytes) : Json(nullptr)},
                        {"ballast", ballast}};
    witness.expected = {{"available_bytes", "more than 0"}, {"ballast", false}};
    witness.unit = "bytes";
    witness.holds = space && space->available_bytes > 0 && !ballast;
    return witness;
  }

 private:
  // Two questions that a wrong answer of one alone must not be able to fool: what the controller
  // believes, and what the kernel says about the directory that we are going to fill.
  Status FilesystemIsOurs(Reach& reach) const {
    if (reach.CheckpointDirectory() < 0) {
      return Fail("cannot fill the checkpoint filesystem: the job has no checkpoint directory");
    }
    const Result<FilesystemSpace> space = SpaceOf(reach.CheckpointDirectory());
    if (!space) return tl::unexpected(space.error());
    const int64_t limit = size_ + 2 * ::sysconf(_SC_PAGESIZE);
    if (reach.CheckpointFilesystemIsPrivate() && space->tmpfs && space->total_bytes <= limit) {
      return {};
    }
    return Fail("will not fill the filesystem of '" + reach.CheckpointPath() +
                "': it is not the private one of this run (a tmpfs of " + std::to_string(size_) +
                " bytes); it has " + std::to_string(space->total_bytes) + " bytes");
  }

  int64_t size_;
  std::string name_;
};

class RefusedWrite : public DiskFull {
 public:
  explicit RefusedWrite(Injection injection)
      : DiskFull(std::move(injection)), watch_(this->injection().point, this->injection().step) {}

  ArmSpec Arm() const override { return {ArmAction::kIoError, ENOSPC}; }

  Result<UndoRecipe> Prepare(Reach& reach) override {
    SHAKEDOWN_TRY(TargetIsAlive(reach));
    return UndoRecipe{};
  }

  Result<Json> Inject(Reach& reach) override {
    watch_.Look(*reach.Page(reach.target()), MonoNow());
    return Json{{"process", ToJson(reach.target().identity)},
                {"action", "io_error"},
                {"errno", DescribeErrno(ENOSPC)}};
  }

  bool EffectBeforeRelease() const override { return false; }

  Witness Effect(Reach& reach) override {
    Witness witness;
    witness.what = "the error that " + shakedown::Describe(reach.target()) + " met when it saved";
    witness.holds = LookForSaveError(reach, &witness.observed);
    witness.expected = ExpectedError();
    failed_ = witness.holds;
    return witness;
  }

  // Seen from outside: the checkpoint did not come to be, although its writer has left the point.
  Witness Consequence(Reach& reach) override {
    watch_.Look(*reach.Page(reach.target()), MonoNow());
    const bool published = Published(reach);
    Witness witness;
    witness.what = "whether checkpoint " + std::to_string(injection().step) + " was published";
    witness.observed = {{"published", published}, {"writer", watch_.Observed()}};
    witness.expected = {{"published", false}};
    witness.holds = failed_ && !published;
    return witness;
  }

  // It acts once, by itself: over when the refused call has returned, which the reported error or a
  // writer that has left the point shows.
  Witness Undone(Reach& reach) override {
    watch_.Look(*reach.Page(reach.target()), MonoNow());
    Witness witness;
    witness.what =
        "whether the refused call of " + shakedown::Describe(reach.target()) + " has returned";
    witness.holds = failed_ || watch_.moved() || Ended(reach, reach.target());
    witness.observed = witness.holds;
    witness.expected = true;
    return witness;
  }

 private:
  LaneWatch watch_;
  bool failed_ = false;
};

constexpr Point kFullPoints[] = {Point::kCheckpointWrite};
constexpr ParamSpec kFullParams[] = {
    {.name = "size",
     .type = ParamType::kBytes,
     .default_text = "16MiB",
     .minimum = "1MiB",
     .maximum = "1GiB",
     .sentence =
         "Size of the private filesystem; it must hold the checkpoints that the job keeps."}};
constexpr std::string_view kClasses[] = {"C11", "C14"};

Availability Available(const Machine& machine) {
  if (machine.mount_namespace) {
    return {.available = true, .level = Level::kReal, .means = std::string(kPrivateTmpfs)};
  }
  return {
      .available = true,
      .level = Level::kRealEffect,
      .means = std::string(kProbe),
      .better = "a private filesystem needs a mount namespace: " + machine.why_no_mount_namespace};
}

std::unique_ptr<Injector> Make(const Injection& injection, const Availability& means) {
  if (means.means == kPrivateTmpfs) return std::make_unique<FullFilesystem>(injection);
  return std::make_unique<RefusedWrite>(injection);
}

}  // namespace

const Fault disk_full = {
    .family = "disk",
    .name = "full",
    .summary = "The checkpoint filesystem is full when a checkpoint is about to be written.",
    .params = kFullParams,
    .target = TargetKind::kRank,
    .points = kFullPoints,
    .level = Level::kReal,
    .level_why = "The kernel has no block left and answers every writer with ENOSPC.",
    .needs =
        "a mount namespace, as root or through a user namespace; otherwise the probe answers the "
        "one write with ENOSPC (real effect)",
    .classes = kClasses,
    .radius = "a small filesystem that only this run has",
    .ends = Ends::kByRecipe,
    .needs_hold = true,
    .excludes = {},
    .mechanism = "storage_full",
    .operator_sees =
        "A save fails with 'No space left on device'; training goes on, and saves succeed "
        "again when there is space.",
    .runbook = "storage_full.md",
    .available = Available,
    .make = Make,
};

}  // namespace shakedown::faults
