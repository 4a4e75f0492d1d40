// collective.never_return: a rank has contributed to a collective, and the call does not come back.
#include "injectors/catalog.h"
#include "injectors/primitives/stall.h"

namespace shakedown::faults {
namespace {

constexpr Point kNeverReturnPoints[] = {Point::kCollectiveEnqueued};
constexpr std::string_view kClasses[] = {"C06"};

Availability Available(const Machine&) {
  return {.available = true, .level = Level::kRealEffect, .means = "probe"};
}

}  // namespace

const Fault collective_never_return = {
    .family = "collective",
    .name = "never_return",
    .summary = "A rank contributes to a collective, and its call never comes back.",
    .params = {},
    .target = TargetKind::kRank,
    .points = kNeverReturnPoints,
    .level = Level::kRealEffect,
    .level_why =
        "The rank really contributes and then really hangs inside the call, as in a library "
        "that lost a completion; no completion was lost.",
    .needs = "nothing",
    .classes = kClasses,
    .radius = "the one rank; its peers wait for it in the next collective",
    .ends = Ends::kWithProcess,
    .excludes = {},
    .mechanism = "not_joined",
    .operator_sees =
        "All ranks are alive; the peers completed the collective in which one rank still "
        "is, and wait in a later one.",
    .runbook = "collective_never_returns.md",
    .available = Available,
    .make = MakeStall,
};

}  // namespace shakedown::faults
