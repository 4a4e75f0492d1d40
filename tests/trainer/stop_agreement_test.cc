// Ranks that agree on the step to stop after.
#include "trainer/stop_agreement.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

class StopAgreementTest : public testing::Test {
 protected:
  // Two ranks of one attempt.
  StopAgreement one() const { return StopAgreement(directory_.path() / "store-0"); }
  StopAgreement two() const { return StopAgreement(directory_.path() / "store-0"); }
  test_support::TempDir directory_;
};

TEST_F(StopAgreementTest, WithoutARequestNobodyStops) {
  for (int64_t step = 1; step <= 5; ++step) EXPECT_FALSE(*one().StopsAfter(step, false));
}

TEST_F(StopAgreementTest, ARequestStopsAllRanksAfterTheNextStep) {
  EXPECT_FALSE(*one().StopsAfter(3, true));
  EXPECT_FALSE(*two().StopsAfter(3, false));
  EXPECT_TRUE(*one().StopsAfter(4, true));
  EXPECT_TRUE(*two().StopsAfter(4, false));
}

// The second rank sees its signal a step later, when the mark is already there: it must not move
// it.
TEST_F(StopAgreementTest, ALaterRequestDoesNotMoveTheStep) {
  EXPECT_FALSE(*one().StopsAfter(3, true));
  EXPECT_TRUE(*two().StopsAfter(4, true));
  EXPECT_TRUE(*one().StopsAfter(4, true));
}

TEST_F(StopAgreementTest, TheMarkGoesAwayAndIsOfOneAttemptOnly) {
  EXPECT_FALSE(*one().StopsAfter(3, true));
  EXPECT_FALSE(*StopAgreement(directory_.path() / "store-1").StopsAfter(4, false));
  one().Remove();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(StopAgreementTest, AMarkThatCannotBeMadeIsAnError) {
  EXPECT_FALSE(StopAgreement(directory_.path() / "nowhere" / "store").StopsAfter(3, true));
}

}  // namespace
}  // namespace shakedown
