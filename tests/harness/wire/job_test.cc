// job.json, which the controller writes and the launcher, the trainer and the checks read.
#include "harness/wire/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shakedown {
namespace {

using testing::HasSubstr;

JobConfig Unusual() {
  JobConfig job;
  job.ranks = 5;
  job.hidden = {7};
  job.data_dir = "somewhere";
  job.seed = 0xFFFFFFFFFFFFFFFF;
  job.learning_rate = 0.1;
  job.checkpoint = {7, CheckpointMode::kSync, 2};
  job.watchdog = std::chrono::seconds(3);
  job.restart_policy = RestartPolicy::kNone;
  return job;
}

TEST(Job, ComesBackAsItWasWritten) {
  for (const JobConfig& job : {JobConfig{}, Unusual()}) {
    const auto text = DumpJson(ToJson(job));
    const auto again = JobConfigFromJson(*ParseJson(text));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, job);
  }
}

TEST(Job, EveryFieldIsNeeded) {
  const Json whole = ToJson(JobConfig{});
  for (const auto& [key, value] : whole.items()) {
    Json without = whole;
    without.erase(key);
    const auto job = JobConfigFromJson(without);
    ASSERT_FALSE(job) << key;
    EXPECT_THAT(job.error().message, HasSubstr("'" + key + "'"));
  }
}

TEST(Job, AnUnknownFieldAndAWrongTypeAreErrors) {
  Json json = ToJson(JobConfig{});
  json["rnaks"] = 3;
  EXPECT_THAT(JobConfigFromJson(json).error().message, HasSubstr("'rnaks'"));
  json = ToJson(JobConfig{});
  json["ranks"] = "three";
  EXPECT_THAT(JobConfigFromJson(json).error().message, HasSubstr("'ranks'"));
  json = ToJson(JobConfig{});
  json["checkpoint_mode"] = "sometimes";
  EXPECT_THAT(JobConfigFromJson(json).error().message, HasSubstr("not sync or async"));
  EXPECT_FALSE(JobConfigFromJson(Json::array()));
}

}  // namespace
}  // namespace shakedown
