// Saving at once and on a thread of its own.
#include "trainer/checkpoint/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <thread>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/checkpoint/armed_point.h"

namespace shakedown {
namespace {

using testing::ElementsAre;

// Stays shut until it is opened.
class Gate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class Saver : public testing::TestWithParam<CheckpointMode> {
 protected:
  std::unique_ptr<CheckpointSaver> Open(CheckpointMode mode, int keep = 3) {
    SaveObserver observer;
    const auto note = [this](std::string what) {
      const std::lock_guard lock(mutex_);
      told_.push_back(std::move(what));
    };
    observer.saved = [note](const SavedCheckpoint& saved) {
      note("saved " + std::to_string(saved.manifest.step));
    };
    observer.failed = [note](int64_t step, const PublishError& error) {
      note("failed " + std::to_string(step) + " " + error.operation);
    };
    observer.rotation_failed = [note](int64_t step, const Error&) {
      note("rotation failed " + std::to_string(step));
    };
    auto saver = CheckpointSaver::Open(directory_.path(), {1, mode, keep}, observer);
    EXPECT_TRUE(saver);
    return saver ? std::move(*saver) : nullptr;
  }
  static CheckpointSaver::Serialize Sound(int64_t step) {
    return [step]() -> Result<SerializedCheckpoint> {
      const auto built = test_support::BuildCheckpoint(step);
      return SerializedCheckpoint{built.bytes, built.manifest};
    };
  }
  std::vector<std::string> told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  bool Exists(int64_t step) const {
    return std::filesystem::exists(directory_.path() / CheckpointManifestName(step));
  }

  test_support::TempDir directory_;
  std::mutex mutex_;
  std::vector<std::string> told_;
};

TEST_P(Saver, SavesRotatesAndTells) {
  const auto saver = Open(GetParam(), 2);
  for (const int64_t step : {1, 2, 3}) saver->Save(step, Sound(step));
  ASSERT_TRUE(saver->Finish(std::nullopt));
  EXPECT_TRUE(saver->last_succeeded());
  EXPECT_THAT(told(), ElementsAre("saved 1", "saved 2", "saved 3"));
  EXPECT_FALSE(Exists(1));
  EXPECT_TRUE(Exists(2));
  EXPECT_TRUE(Exists(3));
  EXPECT_EQ(probe::internal::page->observed.committed_step.load(), 3u);
}

TEST_P(Saver, AFailureIsToldBeforeTheNextSaveAndRemovedByIt) {
  const auto saver = Open(GetParam());
  saver->Save(1, Sound(1));
  ASSERT_TRUE(saver->Finish(std::nullopt));
  {
    const test_support::ArmedPoint armed(Point::kCheckpointWrite, 2, ENOSPC);
    saver->Save(2, Sound(2));
    ASSERT_TRUE(saver->Finish(std::nullopt));
    EXPECT_TRUE(armed.acted());
  }
  EXPECT_FALSE(saver->last_succeeded());
  EXPECT_EQ(probe::internal::page->observed.checkpoint_error.load(), uint64_t{ENOSPC} << 32 | 2);
  EXPECT_TRUE(Exists(1));
  EXPECT_FALSE(Exists(2));
  saver->Save(3, Sound(3));
  ASSERT_TRUE(saver->Finish(std::nullopt));
  EXPECT_TRUE(saver->last_succeeded());
  EXPECT_THAT(told(), ElementsAre("saved 1", "failed 2 write", "saved 3"));
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    EXPECT_FALSE(entry.path().filename().native().starts_with(".tmp-")) << entry.path();
  }
}

TEST_P(Saver, WhatCannotBeSerializedIsAFailedSave) {
  const auto saver = Open(GetParam());
  saver->Save(1, []() -> Result<SerializedCheckpoint> { return Fail("no memory"); });
  ASSERT_TRUE(saver->Finish(std::nullopt));
  EXPECT_FALSE(saver->last_succeeded());
  EXPECT_THAT(told(), ElementsAre("failed 1 serialize"));
}

TEST_P(Saver, TornFilesOfAnEarlierAttemptAreRemovedAtTheStart) {
  ASSERT_TRUE(PublishFile(directory_.path() / ".tmp-old", "torn", Durability::kBuffered));
  const auto saver = Open(GetParam());
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / ".tmp-old"));
}

INSTANTIATE_TEST_SUITE_P(BothModes, Saver,
                         testing::Values(CheckpointMode::kSync, CheckpointMode::kAsync),
                         [](const auto& mode) { return std::string(ToString(mode.param)); });

TEST_F(Saver, AnAsynchronousSaveDoesNotHoldTheTrainingUpButTheNextOneWaits) {
  const auto saver = Open(CheckpointMode::kAsync);
  Gate gate;
  saver->Save(1, [&]() -> Result<SerializedCheckpoint> {
    gate.Wait();
    return Sound(1)();
  });
  // Save has returned although nothing is saved yet.
  EXPECT_FALSE(saver->Finish(Nanoseconds{0}));
  EXPECT_THAT(told(), ElementsAre());
  std::atomic<bool> second_began{false};
  std::thread trainer([&] {
    saver->Save(2, [&]() -> Result<SerializedCheckpoint> {
      second_began = true;
      EXPECT_THAT(told(), ElementsAre("saved 1"));
      return Sound(2)();
    });
  });
  gate.Open();
  trainer.join();
  EXPECT_TRUE(saver->Finish(std::nullopt));
  EXPECT_TRUE(second_began);
  EXPECT_THAT(told(), ElementsAre("saved 1", "saved 2"));
}

TEST_F(Saver, ThePointsOfAnAsynchronousSaveAreInTheWritersLane) {
  const auto saver = Open(CheckpointMode::kAsync);
  saver->Save(7, Sound(7));
  ASSERT_TRUE(saver->Finish(std::nullopt));
  const auto lane =
      Unpack(probe::internal::page->observed.lanes[static_cast<size_t>(Lane::kWriter)].load());
  EXPECT_EQ(lane.point, Point::kCheckpointRotate);
  EXPECT_EQ(lane.step, 7u);
}

TEST_F(Saver, ADirectoryThatIsNotThereIsAnError) {
  const auto saver = CheckpointSaver::Open(directory_.path() / "nowhere", {}, {});
  ASSERT_FALSE(saver);
  EXPECT_EQ(saver.error().code, ENOENT);
}

}  // namespace
}  // namespace shakedown
