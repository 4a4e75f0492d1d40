// One armed fault. The life around it (validation, hold, journal, deadlines, events, sampling,
// undo) is in harness/run/injection.cc, once for all faults; an injector has only what is its own.
//
// Order of calls, all on the controller's thread:
//   Arm -> [the target holds at the point] -> Prepare -> (recipe is fsync'ed) -> Inject
//       -> Effect until it holds  [before the release when EffectBeforeRelease()]
//       -> release -> Effect again and again while the fault lasts; Consequence until it holds;
//          Bystander at the end
//       -> undo recipe (by harness/run) -> Undone until it holds
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/wire/json.h"
#include "harness/wire/progress_page.h"
#include "injectors/fault.h"
#include "injectors/reach.h"
#include "injectors/undo.h"

namespace shakedown {

// A measurement with its limit. `holds` false is not an error: it may hold later.
struct Witness {
  bool holds = false;
  std::string what;  // "exit status of rank 1"
  Json observed;
  Json expected;
  std::string unit;
};

// What goes into the target's page.
struct ArmSpec {
  ArmAction action = ArmAction::kNone;
  int64_t argument = 0;
  bool repeat = false;
};

class Injector {
 public:
  virtual ~Injector() = default;

  virtual ArmSpec Arm() const { return {}; }
  // Bytes of private checkpoint filesystem that must exist before attempt 0; nullopt: none.
  virtual std::optional<int64_t> PrivateFilesystemBytes() const { return std::nullopt; }

  // Touches nothing. Returns how to undo what Inject is about to do; empty when it ends with its
  // process.
  virtual Result<UndoRecipe> Prepare(Reach& reach) = 0;
  // Does it; returns the facts (pid identity, bytes, signal, path). In-process faults act by the
  // release of the hold and return what was armed.
  virtual Result<Json> Inject(Reach& reach) = 0;
  // Whether Effect must hold before the target is released.
  virtual bool EffectBeforeRelease() const = 0;

  // Measured on the kernel's or the controller's side, from the first time it holds until the fault
  // ends: it must hold at every sample.
  virtual Witness Effect(Reach& reach) = 0;
  // What the victim or its peers do because of it. Asked until it holds.
  virtual Witness Consequence(Reach& reach) = 0;
  // That nobody else was acted upon.
  virtual Witness Bystander(Reach& reach) = 0;
  // After undo: that nothing of it is left.
  virtual Witness Undone(Reach& reach) = 0;
};

}  // namespace shakedown
