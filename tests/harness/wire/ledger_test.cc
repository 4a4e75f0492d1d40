// The ledger's records, whole and damaged.
#include "harness/wire/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shakedown {
namespace {

using testing::HasSubstr;

LedgerStep SampleStep() {
  LedgerStep step;
  step.step = 39;
  step.epoch = 1;
  step.position = 96;
  step.lr_bits = 0x3FF0000000000001;
  step.loss_bits = 7;
  step.grad_norm_bits = 8;
  step.ids_digest = {1, 2};
  step.ids_sum = 77;
  step.parts = 2;
  step.state = {{{3, 4}, 5}, {{6, 7}, 8}, {{9, 10}, 5056}};
  step.t_ns = 123456789;
  step.ids = {5, 4, 3};
  return step;
}

std::string SampleBytes() {
  return EncodeLedgerHeader({2, 3, 1}) +
         EncodeLedgerRecord(LedgerStart{30, "step-00000030.pt", {1, 2}, {}, 9}) +
         EncodeLedgerRecord(SampleStep()) + EncodeLedgerRecord(LedgerCheckpoint{40, {3, 4}, 10}) +
         EncodeLedgerRecord(LedgerEnd{60, 71, 11});
}

TEST(Ledger, EveryKindOfRecordComesBackAsItWasWritten) {
  const auto ledger = DecodeLedger(SampleBytes());
  ASSERT_TRUE(ledger) << ledger.error().message;
  EXPECT_EQ(ledger->header.rank, 2);
  EXPECT_EQ(ledger->header.world_size, 3);
  EXPECT_EQ(ledger->header.attempt, 1);
  EXPECT_FALSE(ledger->torn_tail);
  ASSERT_EQ(ledger->records.size(), 4u);
  EXPECT_EQ(std::get<LedgerStart>(ledger->records[0]).file, "step-00000030.pt");
  const auto& step = std::get<LedgerStep>(ledger->records[1]);
  EXPECT_EQ(step.ids, SampleStep().ids);
  EXPECT_EQ(step.state, SampleStep().state);
  EXPECT_EQ(EncodeLedgerRecord(step), EncodeLedgerRecord(SampleStep()));
  EXPECT_EQ(std::get<LedgerCheckpoint>(ledger->records[2]).step, 40u);
  EXPECT_EQ(std::get<LedgerEnd>(ledger->records[3]).exit_code, 71);
}

TEST(Ledger, WhereverTheFileIsCutTheRecordsBeforeAreKept) {
  const std::string bytes = SampleBytes();
  const size_t header = EncodeLedgerHeader({}).size();
  for (size_t size = header; size < bytes.size(); ++size) {
    const auto ledger = DecodeLedger(std::string_view(bytes).substr(0, size));
    ASSERT_TRUE(ledger) << "cut at " << size << ": " << ledger.error().message;
    EXPECT_LT(ledger->records.size(), 4u);
    size_t whole = header;
    for (const LedgerRecord& record : ledger->records) whole += EncodeLedgerRecord(record).size();
    EXPECT_EQ(ledger->torn_tail, whole != size) << "cut at " << size;
  }
}

TEST(Ledger, AChangedBitInAWholeRecordIsAnError) {
  const std::string bytes = SampleBytes();
  const size_t header = EncodeLedgerHeader({}).size();
  const size_t last = bytes.size() - EncodeLedgerRecord(LedgerEnd{}).size();
  for (size_t at = header; at < last; ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    const auto ledger = DecodeLedger(changed);
    // A changed size may make the rest look like a torn record: then records are missing.
    EXPECT_TRUE(!ledger || (ledger->torn_tail && ledger->records.size() < 4)) << "byte " << at;
  }
}

TEST(Ledger, AnErrorNamesTheByte) {
  std::string bytes = SampleBytes();
  const size_t header = EncodeLedgerHeader({}).size();
  bytes[header + 10] = static_cast<char>(bytes[header + 10] ^ 1);
  const auto ledger = DecodeLedger(bytes);
  ASSERT_FALSE(ledger);
  EXPECT_THAT(ledger.error().message, HasSubstr("at byte " + std::to_string(header)));
}

TEST(Ledger, WhatIsNoLedgerIsRefused) {
  EXPECT_FALSE(DecodeLedger(""));
  EXPECT_FALSE(DecodeLedger(std::string(64, 'x')));
}

}  // namespace
}  // namespace shakedown
