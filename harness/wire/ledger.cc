#include "harness/wire/ledger.h"

#include <bit>
#include <cstring>

namespace shakedown {
namespace {

static_assert(std::endian::native == std::endian::little, "the ledger is written as it lies");

constexpr size_t kHeaderBytes = 64;
// Far above any real step (ids of one step of one rank); refuses sizes that damage has made up.
constexpr uint32_t kMaxPayload = 64u << 20;

enum Kind : uint32_t { kStart = 1, kStep = 2, kCheckpoint = 3, kEnd = 4 };

struct Out {
  std::string bytes;
  template <typename T>
  void Raw(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Do(uint64_t& v) { Raw(v); }
  void Do(int64_t& v) { Raw(v); }
  void Do(uint32_t& v) { Raw(v); }
  void Do(int32_t& v) { Raw(v); }
  void Do(std::string& v) {
    Raw(static_cast<uint32_t>(v.size()));
    bytes += v;
  }
  void Do(std::vector<uint32_t>& v) {
    Raw(static_cast<uint32_t>(v.size()));
    bytes.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(uint32_t));
  }
};

struct In {
  std::string_view bytes;
  bool ok = true;
  void Raw(void* to, size_t n) {
    if (bytes.size() < n) {
      ok = false;
      return;
    }
    std::memcpy(to, bytes.data(), n);
    bytes.remove_prefix(n);
  }
  template <typename T>
  void Do(T& v) {
    Raw(&v, sizeof v);
  }
  void Do(std::string& v) {
    const uint32_t n = Size(1);
    v.resize(n);
    Raw(v.data(), n);
  }
  void Do(std::vector<uint32_t>& v) {
    const uint32_t n = Size(sizeof(uint32_t));
    v.resize(n);
    Raw(v.data(), size_t{n} * sizeof(uint32_t));
  }
  uint32_t Size(size_t element) {
    uint32_t n = 0;
    Raw(&n, sizeof n);
    if (n > bytes.size() / element) ok = false;
    return ok ? n : 0;
  }
};

template <typename Io>
void Do(Io& io, Digest128& d) {
  io.Do(d.high);
  io.Do(d.low);
}
template <typename Io>
void Do(Io& io, SizedDigest& d) {
  Do(io, d.digest);
  io.Do(d.bytes);
}
template <typename Io>
void Do(Io& io, StateDigests& d) {
  Do(io, d.weights);
  Do(io, d.optimizer);
  Do(io, d.rng);
}
template <typename Io>
void Do(Io& io, LedgerStart& r) {
  io.Do(r.step);
  io.Do(r.file);
  Do(io, r.file_digest);
  Do(io, r.state);
  io.Do(r.t_ns);
}
template <typename Io>
void Do(Io& io, LedgerStep& r) {
  io.Do(r.step);
  io.Do(r.epoch);
  io.Do(r.position);
  io.Do(r.lr_bits);
  io.Do(r.loss_bits);
  io.Do(r.grad_norm_bits);
  Do(io, r.ids_digest);
  io.Do(r.ids_sum);
  io.Do(r.parts);
  Do(io, r.state);
  io.Do(r.t_ns);
  io.Do(r.ids);
}
template <typename Io>
void Do(Io& io, LedgerCheckpoint& r) {
  io.Do(r.step);
  Do(io, r.file_digest);
  io.Do(r.t_ns);
}
template <typename Io>
void Do(Io& io, LedgerEnd& r) {
  io.Do(r.step);
  io.Do(r.exit_code);
  io.Do(r.t_ns);
}

template <typename T>
bool DecodePayload(std::string_view payload, std::vector<LedgerRecord>* records) {
  In in{payload};
  T record;
  Do(in, record);
  if (!in.ok || !in.bytes.empty()) return false;
  records->push_back(std::move(record));
  return true;
}

}  // namespace

std::string EncodeLedgerHeader(const LedgerHeader& header) {
  std::string out(kLedgerMagic, sizeof kLedgerMagic);
  for (const int32_t v : {header.rank, header.world_size, header.attempt}) {
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  out.resize(kHeaderBytes, '\0');
  return out;
}

std::string EncodeLedgerRecord(const LedgerRecord& record) {
  Out body;
  body.Raw(static_cast<uint32_t>(record.index() + 1));
  std::visit([&](auto copy) { Do(body, copy); }, record);
  Out out;
  out.Raw(static_cast<uint32_t>(body.bytes.size() - sizeof(uint32_t)));
  out.bytes += body.bytes;
  out.Raw(Xxh3Of64(body.bytes));
  return out.bytes;
}

Result<Ledger> DecodeLedger(std::string_view bytes) {
  Ledger ledger;
  if (bytes.size() < kHeaderBytes) {
    return Fail("ledger: " + std::to_string(bytes.size()) + " bytes, less than a header");
  }
  if (std::memcmp(bytes.data(), kLedgerMagic, sizeof kLedgerMagic) != 0) {
    return Fail("ledger: wrong magic at byte 0");
  }
  In header{bytes.substr(sizeof kLedgerMagic)};
  header.Do(ledger.header.rank);
  header.Do(ledger.header.world_size);
  header.Do(ledger.header.attempt);
  size_t at = kHeaderBytes;
  while (at < bytes.size()) {
    const std::string_view rest = bytes.substr(at);
    uint32_t size = 0;
    if (rest.size() < 16) {
      ledger.torn_tail = true;
      break;
    }
    std::memcpy(&size, rest.data(), sizeof size);
    if (size > kMaxPayload) {
      return Fail("ledger: impossible record of " + std::to_string(size) + " bytes at byte " +
                  std::to_string(at));
    }
    if (rest.size() < size_t{size} + 16) {
      ledger.torn_tail = true;
      break;
    }
    const std::string_view body = rest.substr(4, size_t{size} + 4);
    uint64_t sum = 0;
    std::memcpy(&sum, rest.data() + 8 + size, sizeof sum);
    if (sum != Xxh3Of64(body)) {
      return Fail("ledger: checksum of the record at byte " + std::to_string(at) + " is wrong");
    }
    uint32_t kind = 0;
    std::memcpy(&kind, body.data(), sizeof kind);
    const std::string_view payload = body.substr(4);
    const bool ok = kind == kStart  ? DecodePayload<LedgerStart>(payload, &ledger.records)
                    : kind == kStep ? DecodePayload<LedgerStep>(payload, &ledger.records)
                    : kind == kCheckpoint
                        ? DecodePayload<LedgerCheckpoint>(payload, &ledger.records)
                    : kind == kEnd ? DecodePayload<LedgerEnd>(payload, &ledger.records)
                                   : false;
    if (!ok) {
      return Fail("ledger: malformed record of kind " + std::to_string(kind) + " at byte " +
                  std::to_string(at));
    }
    at += size_t{size} + 16;
  }
  return ledger;
}

}  // namespace shakedown
