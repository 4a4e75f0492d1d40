#include "harness/wire/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/wire/job.h"
#include "harness/wire/scenario.h"

namespace shakedown {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string WhyNot(std::string_view text) {
  const Result<Json> json = ParseJson(text);
  return json ? "it is JSON" : json.error().message;
}

TEST(Json, TextThatIsNoneIsRefusedWithItsPlace) {
  EXPECT_EQ(WhyNot(""), "not JSON: the text is empty");
  EXPECT_EQ(WhyNot("x"), "not JSON: unexpected text in line 1, column 1 (byte 1)");
  EXPECT_EQ(WhyNot("{\n \"ä\": x}"), "not JSON: unexpected text in line 2, column 7 (byte 10)");
  EXPECT_EQ(WhyNot("{} {}"), "not JSON: unexpected text in line 1, column 4 (byte 4)");
  EXPECT_EQ(WhyNot("{\"a\": 1"), "not JSON: it ends too early in line 1, column 8 (byte 8)");
  EXPECT_EQ(WhyNot("[1e999]"), "not JSON: a number is beyond what can be read");
}

TEST(Json, ErrorsAreInOurWordsAndHoldNoneOfTheText) {
  for (const std::string_view text :
       {"\x1b[2J", "{\"a\": \x1b}", "\"\xff\"", "[1,]", "nul", "{\"a\" 1}"}) {
    EXPECT_THAT(WhyNot(text), Not(HasSubstr("exception"))) << text;
    EXPECT_THAT(WhyNot(text), Not(HasSubstr("\x1b"))) << text;
  }
}

TEST(Json, AFieldOfAWrongTypeIsNamed) {
  Json job = ToJson(JobConfig());
  job["steps"] = "many";
  EXPECT_EQ(JobConfigFromJson(job).error().message.find("exception"), std::string::npos);
  EXPECT_THAT(JobConfigFromJson(job).error().message, HasSubstr("field 'steps': of a wrong type"));
  job.erase("steps");
  EXPECT_THAT(JobConfigFromJson(job).error().message, HasSubstr("field 'steps': absent"));
  Json plan = ToJson(Plan());
  plan["seed"] = "one";
  EXPECT_THAT(PlanFromJson(plan).error().message, HasSubstr("field seed is of a wrong type"));
  EXPECT_THAT(PlanFromJson(Json("text")).error().message, Not(HasSubstr("exception")));
}

}  // namespace
}  // namespace shakedown
