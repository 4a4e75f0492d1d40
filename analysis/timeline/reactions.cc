#include "analysis/timeline/reactions.h"

#include "harness/wire/log_events.h"

namespace shakedown {
namespace {

namespace e = log_events;

constexpr Sign kPeerGone[] = {
    {e::kPeerLost, "ERROR"}, {e::kRankExited, "ERROR"}, {e::kAttemptFailed, "ERROR"}};
constexpr Sign kHang[] = {{e::kCollectiveTimeout, "ERROR"},
                          {e::kWatchdogFired, "ERROR"},
                          {e::kPeerLost, "ERROR"},
                          {e::kRankExited, "ERROR"},
                          {e::kAttemptFailed, "ERROR"}};
constexpr Sign kMemory[] = {{e::kMemoryExhausted, "ERROR"}};
constexpr Sign kData[] = {{e::kDataSlow, "WARNING"}, {e::kWorkerReplaced, "WARNING"}};
constexpr Sign kSave[] = {{e::kCheckpointFailed, "ERROR"}};

struct MechanismSigns {
  std::string_view mechanism;
  std::span<const Sign> signs;
};
constexpr MechanismSigns kSigns[] = {
    {"killed", kPeerGone}, {"not_joined", kHang},   {"out_of_memory_device", kMemory},
    {"slow_data", kData},  {"storage_full", kSave},
};

constexpr LimitInfo kLimits[] = {
    {"collective", e::kCollectiveTimeout, "ERROR", "timeout_ms"},
    {"watchdog", e::kWatchdogFired, "ERROR", "limit_ms"},
    {"worker_deadline", e::kWorkerReplaced, "WARNING", "deadline_ms"},
};

bool IsSign(const LogLine& line, std::span<const Sign> signs) {
  if (signs.empty()) return line.alarming();
  for (const Sign& sign : signs) {
    if (line.event == sign.event && line.level == sign.level) return true;
  }
  return false;
}

bool WasInjectedInto(const ProcessExit& exit, const SecretEvidence& secret) {
  for (const InjectedRecord& injected : secret.injected) {
    if (injected.place.attempt == exit.attempt && injected.place.rank == exit.rank &&
        (injected.place.worker == exit.worker || !exit.worker)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::span<const Sign> SignsOf(std::string_view mechanism) {
  for (const MechanismSigns& entry : kSigns) {
    if (entry.mechanism == mechanism) return entry.signs;
  }
  return {};
}

std::string WriterOf(const LogLine& line) {
  return line.writer ? "rank " + std::to_string(*line.writer) : "the launcher";
}

std::optional<Reaction> JobReaction(const ObservedEvidence& observed, const SecretEvidence& secret,
                                    const InjectedRecord& injected) {
  if (!injected.t0) return std::nullopt;
  std::optional<Reaction> first;
  const auto offer = [&](MonoTime at, std::string what, const Where& where) {
    if (at < *injected.t0 || (first && first->at <= at)) return;
    first = Reaction{at, std::move(what), where};
  };
  const std::span<const Sign> signs = SignsOf(injected.mechanism);
  for (const LogLine* line : observed.AllLines()) {
    if (line->arrived && line->attempt >= injected.place.attempt && IsSign(*line, signs)) {
      offer(*line->arrived, WriterOf(*line) + " logged " + line->event, line->where);
    }
  }
  for (const ProcessExit& exit : observed.exits) {
    if (exit.role != "rank" || !exit.failed() || WasInjectedInto(exit, secret)) continue;
    offer(exit.t, "rank " + std::to_string(exit.rank) + " exited", exit.where);
  }
  return first;
}

std::optional<Reaction> OwnNotice(const ObservedEvidence& observed, MonoTime zero) {
  std::optional<Reaction> first;
  const auto offer = [&](MonoTime at, std::string what, const Where& where) {
    if (at < zero || (first && first->at <= at)) return;
    first = Reaction{at, std::move(what), where};
  };
  for (const Event* event : observed.Named(events::kNoProgress)) {
    offer(event->t, "no rank made progress", ObservedEvidence::At(*event));
  }
  for (const ProcessExit& exit : observed.exits) {
    if (exit.failed()) offer(exit.t, exit.role + " exited", exit.where);
  }
  return first;
}

const LimitInfo* FindLimit(std::string_view name) {
  for (const LimitInfo& limit : kLimits) {
    if (limit.name == name) return &limit;
  }
  return nullptr;
}

const LogLine* FirstLimitLine(const ObservedEvidence& observed, const LimitInfo& limit,
                              MonoTime zero) {
  for (const LogLine* line : observed.AllLines()) {
    if (line->event == limit.event && line->level == limit.level && line->when() >= zero) {
      return line;
    }
  }
  return nullptr;
}

}  // namespace shakedown
