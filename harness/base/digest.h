// Digests. XXH3-128 for content that is compared within Shakedown, SHA-256 for the seal of
// evidence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "harness/base/status.h"

namespace shakedown {

struct Digest128 {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Digest128&) const = default;
};

// 32 lower-case hexadecimal digits, high half first.
std::string ToHex(const Digest128& digest);
Result<Digest128> ParseDigest128(std::string_view hex);

// A digest over no bytes is refused (Finish fails): it would make two empty things equal.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }
  Result<Digest128> Finish() const;
  uint64_t bytes() const { return bytes_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  uint64_t bytes_ = 0;
};

Digest128 Xxh3Of(std::string_view bytes);
uint64_t Xxh3Of64(std::string_view bytes);

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);
// Digest of a file's content, read in pieces; `bytes` receives its size.
Result<std::string> Sha256OfFile(const std::filesystem::path& path, int64_t* bytes = nullptr);

}  // namespace shakedown
