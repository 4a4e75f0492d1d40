// What a rank is told, and how it refuses what it cannot run.
#include "trainer/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "harness/base/file.h"
#include "harness/wire/environment.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

using testing::HasSubstr;

class RankConfig : public testing::Test {
 protected:
  std::map<std::string, std::string> variables_ = {{env::kRank, "1"},
                                                   {env::kWorldSize, "3"},
                                                   {env::kRankDir, "/somewhere/rank-1"},
                                                   {env::kStoreFile, "/somewhere/store"}};
  Result<RankEnvironment> Read() const {
    return ReadRankEnvironment([this](const char* name) -> const char* {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    });
  }
  std::string ReadError() const {
    const auto environment = Read();
    return environment ? "" : environment.error().message;
  }
  Result<JobConfig> Job(const JobConfig& job) const { return Job(DumpJson(ToJson(job))); }
  Result<JobConfig> Job(const std::string& text) const {
    const auto path = directory_.path() / "job.json";
    EXPECT_TRUE(PublishFile(path, text, Durability::kBuffered));
    return ReadJob(path, *Read());
  }
  test_support::TempDir directory_;
};

TEST_F(RankConfig, TheEnvironmentIsReadWithDefaultsWhereThereAreSome) {
  auto environment = Read();
  ASSERT_TRUE(environment) << environment.error().message;
  EXPECT_EQ(environment->rank, 1);
  EXPECT_EQ(environment->world_size, 3);
  EXPECT_EQ(environment->attempt, 0);
  EXPECT_EQ(environment->heartbeat_fd, std::nullopt);
  EXPECT_EQ(environment->micro_batch_parts, 1);
  variables_[env::kRestartCount] = "2";
  variables_[env::kHeartbeatFd] = "7";
  variables_[env::kMicroBatchParts] = "4";
  environment = Read();
  ASSERT_TRUE(environment);
  EXPECT_EQ(environment->attempt, 2);
  EXPECT_EQ(environment->heartbeat_fd, 7);
  EXPECT_EQ(environment->micro_batch_parts, 4);
}

TEST_F(RankConfig, EachVariableThatIsMissingIsNamed) {
  for (const char* name : {env::kRank, env::kWorldSize, env::kRankDir, env::kStoreFile}) {
    const auto saved = variables_.extract(name);
    EXPECT_THAT(ReadError(), HasSubstr(name));
    variables_[name] = saved.mapped();
  }
}

TEST_F(RankConfig, NumbersThatAreNoneAreRefused) {
  for (const char* text : {"", "x", "1x", "-1", "99999999999999999999", "3"}) {
    variables_[env::kRank] = text;
    EXPECT_NE(ReadError(), "") << "RANK=" << text;
  }
}

TEST_F(RankConfig, FlagsAreReadAndUnknownOnesRefused) {
  const auto parse = [](std::vector<std::string> arguments) { return ParseRankFlags(arguments); };
  const auto flags = parse({"--config", "job.json", "--checkpoint-dir", "here"});
  ASSERT_TRUE(flags);
  EXPECT_EQ(flags->config, "job.json");
  EXPECT_EQ(flags->checkpoint_dir, "here");
  EXPECT_THAT(parse({}).error().message, HasSubstr("usage"));
  EXPECT_THAT(parse({"--config"}).error().message, HasSubstr("no value"));
  EXPECT_THAT(parse({"--steps", "3"}).error().message, HasSubstr("'--steps'"));
}

TEST_F(RankConfig, ASoundJobIsRead) {
  const auto job = Job(JobConfig{});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(*job, JobConfig{});
}

TEST_F(RankConfig, JobsThatCannotBeRunAreRefusedWithTheReason) {
  const auto why = [&](auto change) {
    JobConfig job;
    change(job);
    const auto read = Job(job);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(why([](auto& job) { job.ranks = 4; }), HasSubstr("WORLD_SIZE is 3"));
  EXPECT_THAT(why([](auto& job) { job.model = "gpt"; }), HasSubstr("'gpt'"));
  EXPECT_THAT(why([](auto& job) { job.hidden = {0}; }), HasSubstr("width"));
  EXPECT_THAT(why([](auto& job) { job.dropout = 1; }), HasSubstr("dropout"));
  EXPECT_THAT(why([](auto& job) { job.steps = 0; }), HasSubstr("steps"));
  EXPECT_THAT(why([](auto& job) { job.micro_batch = 0; }), HasSubstr("micro_batch"));
  EXPECT_THAT(why([](auto& job) { job.accumulation = 0; }), HasSubstr("accumulation"));
  EXPECT_THAT(why([](auto& job) { job.workers = 0; }), HasSubstr("workers"));
  EXPECT_THAT(why([](auto& job) { job.prefetch = 0; }), HasSubstr("prefetch"));
  EXPECT_THAT(why([](auto& job) { job.bucket_bytes = 0; }), HasSubstr("bucket_bytes"));
  EXPECT_THAT(why([](auto& job) { job.checkpoint.keep = 0; }), HasSubstr("keep"));
  EXPECT_THAT(why([](auto& job) { job.collective_timeout = Nanoseconds{1}; }),
              HasSubstr("collective timeout"));
  variables_[env::kMicroBatchParts] = "9";
  EXPECT_THAT(why([](auto&) {}), HasSubstr("SHAKEDOWN_MICRO_BATCH_PARTS"));
}

TEST_F(RankConfig, AFileThatIsMissingOrNoJobIsRefused) {
  EXPECT_THAT(ReadJob(directory_.path() / "none.json", *Read()).error().message,
              HasSubstr("none.json"));
  EXPECT_FALSE(ReadJob(directory_.path(), *Read()));
  EXPECT_THAT(Job("{").error().message, HasSubstr("not JSON"));
  EXPECT_FALSE(Job("{}"));
}

}  // namespace
}  // namespace shakedown
