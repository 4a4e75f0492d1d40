// Writing ledger.bin.
#include "trainer/observe/ledger_writer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "harness/base/file.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

class LedgerWriterTest : public testing::Test {
 protected:
  std::filesystem::path path() const { return directory_.path() / "ledger.bin"; }
  test_support::TempDir directory_;
};

TEST_F(LedgerWriterTest, RecordsOfTwoThreadsAreAllThereAndWhole) {
  const auto writer = LedgerWriter::Create(path(), {1, 3, 2});
  ASSERT_TRUE(writer) << writer.error().message;
  LedgerStep step;
  step.ids.assign(1000, 7);
  std::thread other([&] {
    for (uint64_t i = 0; i < 200; ++i) {
      EXPECT_TRUE((*writer)->Append(LedgerCheckpoint{i, {}, 0}));
    }
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE((*writer)->Append(step));
  other.join();
  const auto ledger = DecodeLedger(*ReadFile(path()));
  ASSERT_TRUE(ledger) << ledger.error().message;
  EXPECT_EQ(ledger->header.rank, 1);
  EXPECT_EQ(ledger->header.attempt, 2);
  EXPECT_EQ(ledger->records.size(), 400u);
  EXPECT_FALSE(ledger->torn_tail);
}

TEST_F(LedgerWriterTest, TheLedgerOfAnotherAttemptIsNotOverwritten) {
  ASSERT_TRUE(LedgerWriter::Create(path(), {}));
  const auto again = LedgerWriter::Create(path(), {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, EEXIST);
}

}  // namespace
}  // namespace shakedown
