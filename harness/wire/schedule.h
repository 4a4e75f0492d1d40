// What the reference job promises about learning rate and sample order, in words and as code that
// the trainer runs. The checks recompute both with code of their own (analysis/checks), so that a
// mistake here is seen and not shared.
//
// Learning rate of step s (from 1), in double, in this order of operations:
//   peak = learning_rate * global_batch / 32          (linear scaling)
//   s <= warmup:  peak * s / warmup
//   else:         peak * (steps - s + 1) / (steps - warmup)       (linear decay to
//   peak/(steps-warmup))
//
// Sample order of epoch e (from 0): a Fisher-Yates shuffle of 0..n-1 driven by
// Random(seed, "epoch/<e>"): for i = n-1 .. 1: swap(order[i], order[Below(i + 1)]).
// The last n mod global_batch samples of the order are not used in that epoch (declared remainder
// rule: drop). Step k of the epoch (from 0) uses order[k*G .. (k+1)*G), G = global_batch; rank r's
// micro-batch m is the m-th run of `micro_batch` ids of the rank's run of G / ranks ids.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/random.h"
#include "harness/wire/job.h"

namespace shakedown {

inline double LearningRate(const JobConfig& job, int64_t step) {
  const double peak = job.learning_rate * static_cast<double>(job.global_batch()) / 32.0;
  if (step <= job.warmup_steps) {
    return peak * static_cast<double>(step) / static_cast<double>(job.warmup_steps);
  }
  return peak * static_cast<double>(job.steps - step + 1) /
         static_cast<double>(job.steps - job.warmup_steps);
}

inline std::vector<uint32_t> EpochOrder(uint64_t seed, int64_t epoch, uint32_t samples) {
  std::vector<uint32_t> order(samples);
  for (uint32_t i = 0; i < samples; ++i) order[i] = i;
  Random random(seed, "epoch/" + std::to_string(epoch));
  for (uint32_t i = samples; i > 1; --i) {
    std::swap(order[i - 1], order[random.Below(i)]);
  }
  return order;
}

inline int64_t StepsPerEpoch(const JobConfig& job, int64_t samples) {
  return samples / job.global_batch();
}

}  // namespace shakedown
