// rank.stall: a rank stops at a point, stays alive, and never joins what its peers wait for.
#include "injectors/primitives/stall.h"
#include "injectors/catalog.h"

namespace shakedown::faults {
namespace {

constexpr Point kStallPoints[] = {
    Point::kCollectiveEnter, Point::kDataNext,       Point::kStepBegin, Point::kForwardBegin,
    Point::kBackwardBegin,   Point::kOptimizerBegin, Point::kStepEnd};
constexpr std::string_view kClasses[] = {"C06"};

Availability Available(const Machine&) {
  return {.available = true, .level = Level::kRealEffect, .means = "probe"};
}

}  // namespace

const Fault rank_stall = {
    .family = "rank",
    .name = "stall",
    .summary = "A rank stops at the named point and stays alive.",
    .params = {},
    .target = TargetKind::kRank,
    .points = kStallPoints,
    .level = Level::kRealEffect,
    .level_why =
        "The rank's thread really never goes on; its peers see what a deadlocked rank gives "
        "them. Only the deadlock's cause is missing.",
    .needs = "nothing",
    .classes = kClasses,
    .radius = "the one rank; its peers wait for it",
    .ends = Ends::kWithProcess,
    .excludes = {},
    .mechanism = "not_joined",
    .operator_sees =
        "All ranks are alive, none makes progress; one has joined fewer collectives than "
        "the others, until a timeout or a watchdog ends the job.",
    .runbook = "not_joined.md",
    .available = Available,
    .make = MakeStall,
};

}  // namespace shakedown::faults
