// The ledger: what a rank did, step by step, in binary so that floating-point values are raw bits.
// ledger.bin is append-only, one per rank and attempt; each record is one write(2), so a killed
// rank leaves at most one torn record, the last.
//
// File: header (LedgerHeader, 64 bytes), then records: u32 payload bytes, u32 kind, payload,
// u64 XXH3-64 over kind and payload. Little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/base/digest.h"
#include "harness/base/status.h"

namespace shakedown {

inline constexpr char kLedgerMagic[8] = {'S', 'K', 'L', 'E', 'D', 'G', 'R', '1'};

struct LedgerHeader {
  int32_t rank = 0;
  int32_t world_size = 0;
  int32_t attempt = 0;
};

// A digest and over how many bytes; zero bytes is an error for readers.
struct SizedDigest {
  Digest128 digest;
  uint64_t bytes = 0;
  bool operator==(const SizedDigest&) const = default;
};

// Digests of a rank's state.
//   weights:   all parameters in registration order, their bytes one after the other
//   optimizer: for each parameter in that order: step (int64), exp_avg, exp_avg_sq
//   rng:       the CPU generator's state (5056 bytes)
struct StateDigests {
  SizedDigest weights;
  SizedDigest optimizer;
  SizedDigest rng;
  bool operator==(const StateDigests&) const = default;
};

// State at the beginning of an attempt: step 0 for a fresh start, else what was loaded.
struct LedgerStart {
  uint64_t step = 0;
  std::string file;       // the checkpoint file really read; empty for a fresh start
  Digest128 file_digest;  // of the bytes read
  StateDigests state;
  int64_t t_ns = 0;
};

// After the optimizer has run and before anything of the next step.
struct LedgerStep {
  uint64_t step = 0;            // from 1
  uint64_t epoch = 0;           // from 0
  uint64_t position = 0;        // index in the epoch's order after this step (samples, all ranks)
  uint64_t lr_bits = 0;         // double
  uint64_t loss_bits = 0;       // double: mean over the rank's samples of the step
  uint64_t grad_norm_bits = 0;  // double: L2 norm of the averaged gradients
  Digest128 ids_digest;         // ordered: u32 ids, one after the other
  uint64_t ids_sum = 0;         // order-free: sum of XXH3-64 of each id's 4 bytes
  uint32_t parts = 1;           // micro-batches were split into so many parts (out of memory)
  StateDigests state;
  int64_t t_ns = 0;           // CLOCK_MONOTONIC at the end of the step
  std::vector<uint32_t> ids;  // the samples really used, in order
};

// A checkpoint that this rank published.
struct LedgerCheckpoint {
  uint64_t step = 0;
  Digest128 file_digest;
  int64_t t_ns = 0;
};

// The rank ended by itself.
struct LedgerEnd {
  uint64_t step = 0;
  int32_t exit_code = 0;
  int64_t t_ns = 0;
};

using LedgerRecord = std::variant<LedgerStart, LedgerStep, LedgerCheckpoint, LedgerEnd>;

std::string EncodeLedgerHeader(const LedgerHeader& header);
std::string EncodeLedgerRecord(const LedgerRecord& record);

struct Ledger {
  LedgerHeader header;
  std::vector<LedgerRecord> records;
  bool torn_tail = false;
};
// Damage anywhere but in a torn last record is an Error that names the byte offset.
Result<Ledger> DecodeLedger(std::string_view bytes);

}  // namespace shakedown
