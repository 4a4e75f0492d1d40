#include "harness/scenario/problem.h"

#include <gtest/gtest.h>

namespace shakedown {
namespace {

TEST(NearestName, FindsTheNameBehindASlip) {
  const std::vector<std::string> names = {"rank.kill", "rank.stall", "disk.full", "steps", "seed"};
  EXPECT_EQ(NearestName("rank.kil", names), "rank.kill");
  EXPECT_EQ(NearestName("rank.klil", names), "rank.kill");
  EXPECT_EQ(NearestName("disk.ful", names), "disk.full");
  EXPECT_EQ(NearestName("stepz", names), "steps");
}

TEST(NearestName, OffersNothingForAnotherWord) {
  const std::vector<std::string> names = {"rank.kill", "seed"};
  EXPECT_EQ(NearestName("learning_rate", names), std::nullopt);
  EXPECT_EQ(NearestName("", names), std::nullopt);
  EXPECT_EQ(NearestName(std::string(100'000, 'x'), names), std::nullopt);
  EXPECT_EQ(NearestName("x", {}), std::nullopt);
}

TEST(Problem, IsDescribedWithItsPlaceAndTheNearestName) {
  const Problem problem{"a.yaml", 3, 5, "stepz", "unknown key 'stepz' in job", "steps"};
  EXPECT_EQ(Describe(problem), "a.yaml:3:5: unknown key 'stepz' in job (did you mean 'steps'?)");
  EXPECT_EQ(ToJson(problem), (Json{{"file", "a.yaml"},
                                   {"line", 3},
                                   {"column", 5},
                                   {"text", "stepz"},
                                   {"message", "unknown key 'stepz' in job"},
                                   {"nearest", "steps"}}));
}

TEST(Problem, OfAWholeFileHasNoPlace) {
  const Problem problem{"a.yaml", 0, 0, "", "the file is empty", std::nullopt};
  EXPECT_EQ(Describe(problem), "a.yaml: the file is empty");
  const Json json = ToJson(problem);
  EXPECT_TRUE(json["line"].is_null());
  EXPECT_TRUE(json["column"].is_null());
  EXPECT_TRUE(json["nearest"].is_null());
}

}  // namespace
}  // namespace shakedown
