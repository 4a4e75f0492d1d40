// How to undo: recipes are data, from a closed set of verbs, written to the journal before the
// fault goes in and played alike by controller, reaper and `shakedown clean`. Each verb is
// idempotent, works from any half-done state, and verifies itself by measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/process/identity.h"
#include "harness/wire/json.h"

namespace shakedown {

enum class UndoVerb {
  // Paths of all verbs are absolute and canonical: a link anywhere in one is an Error (ELOOP),
  // since
  // it would lead to something that the run did not create.
  //
  // Ballast that we put into a filesystem: truncate to 0, unlink, and see the space come back.
  // `path` must have a basename that begins with ".shakedown-" and must be a regular file that is
  // not a link. With `holder`, the path is as seen by that process (/proc/HOLDER/root/...); a
  // holder that is gone took its private filesystem with it: undone.
  kRemoveBallast,
  // A directory that the run made (control socket, temporary files), with its contents, staying on
  // its filesystem and following no link. Its basename must begin with "shakedown-".
  kRemoveTree,
  // A process of the run that must not outlive it: SIGKILL through a pidfd, wait until it is gone.
  kEndProcess,
};

struct UndoStep {
  UndoVerb verb;
  std::string path;                        // kRemoveBallast, kRemoveTree
  std::optional<ProcessIdentity> process;  // kEndProcess; kRemoveBallast: holder
  Milliseconds deadline{2000};
};
using UndoRecipe = std::vector<UndoStep>;

std::string_view ToString(UndoVerb verb);
Json ToJson(const UndoStep& step);
Result<UndoStep> UndoStepFromJson(const Json& json);

// Plays one step. An Error says what remains and what a person has to do.
Status PlayUndo(const UndoStep& step);

}  // namespace shakedown
