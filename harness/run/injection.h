// The life of the plan's injections, written once for all faults:
//
//   armed in the page -> the target holds -> (checkpoint committed?) -> undo recipe on disk ->
//   inject
//   -> effect seen -> released -> sampled while it lasts -> undone -> seen to be undone
//
// Nothing here knows any fault by name; what is a fault's own stands in its Injector.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/time.h"
#include "harness/run/event_loop.h"
#include "harness/run/process_table.h"
#include "harness/run/recorder.h"
#include "harness/wire/control.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/scenario.h"
#include "injectors/fault.h"
#include "injectors/injector.h"

namespace shakedown {

// The job's checkpoint directory as the controller reaches it from outside the job's namespaces.
struct CheckpointAccess {
  UniqueFd directory;
  std::string path;                       // for undo recipes
  std::optional<ProcessIdentity> holder;  // of the private filesystem
};

class Injections {
 public:
  struct Context {
    const Plan& plan;
    EventLoop& loop;
    Recorder& recorder;
    ProcessTable& processes;
    JournalWriter& journal;
    const CheckpointAccess& checkpoint;
    int run_directory;  // descriptor; stays the caller's
    std::function<void(TrackedProcess&, uint32_t arm_index, bool act)> release;
    std::function<bool(int64_t step)> published;     // whether this checkpoint has been published
    std::function<void(const Injection&)> injected;  // told just after; for a live view
  };

  // Makes the injectors. An Error: a fault of the plan is not available here.
  static Result<std::unique_ptr<Injections>> Make(Context context, const Machine& machine);
  ~Injections();

  // Puts the arms (and decoys) that concern this process into its page.
  void Arm(TrackedProcess& process);
  // The process has joined as another rank than its environment said: arms follow the true rank.
  void Rearm(TrackedProcess& process);

  void OnHeld(TrackedProcess& process, const HeldMessage& held);
  void OnFired(TrackedProcess& process, const FiredMessage& fired);
  void OnDied(TrackedProcess& process);
  void OnPublished(int64_t step);
  // What `until:` may name: "save_failed".
  void OnJobEvent(const std::string& name, int rank);

  // The job is over or must end: ends holds, undoes what still acts, writes down what every
  // injection came to. Idempotent.
  void Finish();
  // Whether every fault that acts has what a witness of it needs to hold.
  bool AllWitnessed() const;

  // Something could not be undone.
  bool dirty() const { return dirty_; }
  // Injected so far.
  int injected() const;

 private:
  struct Life;
  struct Decoy;
  class RunReach;

  explicit Injections(Context context);

  void PutArm(TrackedProcess& process, Life& life, bool decoy);
  void Inject(Life& life);
  void RecordInjected(Life& life, Json facts);
  void AwaitEffect(Life& life);
  void Release(Life& life, bool act);
  void ReleaseDecoy(Life& life, const Decoy& decoy);
  void OnDecoyHeld(Life& life, TrackedProcess& process, const HeldMessage& held);
  void FreeDecoys(Life& life);
  void Activate(Life& life);
  void Sample(Life& life);
  void MeasureEffect(Life& life);
  void StopSampling(Life& life);
  void Undo(Life& life);
  void Fail(Life& life, const char* stage, const std::string& reason);
  void Report(Life& life);
  void Witnessed(Life& life, const char* kind, const Witness& witness, int samples, int held,
                 double first_ms, double last_ms);
  Json Where(const Life& life) const;
  Life* FindLife(uint32_t arm_id);

  Context c_;
  std::vector<std::unique_ptr<Life>> lives_;
  bool dirty_ = false;
  bool finished_ = false;
};

}  // namespace shakedown
