#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "injectors/catalog.h"
#include "injectors/injector.h"
#include "tests/support/await.h"
#include "tests/support/victim_reach.h"

namespace shakedown {
namespace {

using test_support::Eventually;
using test_support::Throughout;
using test_support::VictimReach;

Injection Kill(const std::string& signal) {
  return {.id = 1,
          .fault = "rank.kill",
          .with = {{"signal", signal}},
          .rank = 1,
          .step = 20,
          .point = Point::kCollectiveEnter};
}

TEST(RankKill, VictimDiesBySigkillAndBystanderKeepsStepping) {
  const auto injector = FindFault("rank.kill")->make(Kill("KILL"), {});
  const auto reach = VictimReach::Start({.program = "writer"},
                                        [] {
                                          Injection injection = Kill("KILL");
                                          injection.point = Point::kCheckpointWrite;
                                          return injection;
                                        }(),
                                        {});
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  ASSERT_TRUE(injector->Prepare(**reach));
  ASSERT_TRUE(injector->Inject(**reach));
  ASSERT_TRUE(Eventually([&] { return injector->Effect(**reach).holds; }));
  EXPECT_EQ((*reach)->Exit((*reach)->target()), WaitStatus::Signaled(SIGKILL));
  for (const ProcessRef& other : (*reach)->bystanders()) {
    const uint64_t step = (*reach)->Page(other)->last_step.load();
    EXPECT_TRUE(Eventually([&] { return (*reach)->Page(other)->last_step.load() > step + 20; }));
  }
}

TEST(RankKill, ASignalThatTheRankSwallowsHasNoEffect) {
  const auto injector = FindFault("rank.kill")->make(Kill("TERM"), {});
  const auto reach =
      VictimReach::Start({.program = "stepper", .arguments = {"--swallow-term"}}, Kill("TERM"), {});
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  ASSERT_TRUE(injector->Prepare(**reach));
  ASSERT_TRUE(injector->Inject(**reach)) << "sending it succeeds, so only the effect can tell";
  ASSERT_TRUE((*reach)->Release(false));
  EXPECT_TRUE(Throughout(std::chrono::milliseconds(300), [&] {
    return !injector->Effect(**reach).holds && !injector->Consequence(**reach).holds &&
           !injector->Bystander(**reach).holds && !injector->Undone(**reach).holds;
  }));
  EXPECT_EQ(injector->Effect(**reach).observed, "not ended");
}

TEST(RankKill, AnotherSignalThanTheOneThatWasSentIsNoEffect) {
  const auto injector = FindFault("rank.kill")->make(Kill("TERM"), {});
  const auto reach =
      VictimReach::Start({.program = "stepper", .arguments = {"--swallow-term"}}, Kill("TERM"), {});
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  ASSERT_TRUE(injector->Inject(**reach));
  ASSERT_TRUE((*reach)->Signal((*reach)->target(), SIGKILL));
  ASSERT_TRUE(Eventually([&] { return (*reach)->Exit((*reach)->target()).has_value(); }));
  const Witness effect = injector->Effect(**reach);
  EXPECT_FALSE(effect.holds);
  EXPECT_EQ(effect.observed, "SIGKILL");
  EXPECT_EQ(effect.expected, "SIGTERM");
}

TEST(RankStall, AStalledRankThatIsEndedStillCountsAndOneThatGoesOnDoesNot) {
  Injection injection = Kill("KILL");
  injection.fault = "rank.stall";
  injection.with = {};
  const auto injector = FindFault("rank.stall")->make(injection, {});
  const auto reach = VictimReach::Start({.program = "stepper"}, injection, injector->Arm());
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  ASSERT_TRUE(injector->Inject(**reach));
  ASSERT_TRUE((*reach)->Release(true));
  ASSERT_TRUE(Eventually([&] { return injector->Effect(**reach).holds; }));
  ASSERT_TRUE((*reach)->Signal((*reach)->target(), SIGTERM))
      << "a stalled rank leaves signals alone";
  ASSERT_TRUE(Eventually([&] { return (*reach)->Exit((*reach)->target()).has_value(); }));
  EXPECT_TRUE(injector->Effect(**reach).holds) << "it stood until its end";
  // Its page is its own to write: had it gone on, the word would show it.
  (*reach)->MutablePage((*reach)->target())->observed.lanes[0].fetch_add(1);
  EXPECT_FALSE(injector->Effect(**reach).holds);
}

}  // namespace
}  // namespace shakedown
