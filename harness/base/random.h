// Reproducible random numbers: one seed and a stream name give one sequence, on every machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace shakedown {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Streams with different names are independent: adding a draw to one does not move another.
  Random(uint64_t seed, std::string_view stream) : state_(seed) {
    for (const char c : stream) state_ = Mix(state_ ^ static_cast<unsigned char>(c));
  }
  uint64_t Next() { return Mix(state_ += 0x9E3779B97F4A7C15ULL); }
  // Uniform in [0, bound), bound > 0: Lemire's multiplication without the rejection step, whose
  // bias is below bound / 2^64.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * bound) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace shakedown
