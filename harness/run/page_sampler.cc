#include "harness/run/page_sampler.h"

namespace shakedown {
namespace {

constexpr const char* kLaneNames[kLanes] = {"main", "autograd", "writer"};

Json PageFields(const TrackedProcess& process) {
  const PageObserved& page = process.observed();
  Json out = {{"attempt", process.attempt}, {"rank", process.rank}};
  out["worker"] = process.worker ? Json(*process.worker) : Json(nullptr);
  out["incarnation"] = process.incarnation;
  Json lanes = Json::object();
  for (size_t i = 0; i < kLanes; ++i) {
    const uint64_t word = page.lanes[i].load(std::memory_order_relaxed);
    if (word == 0) continue;
    const Progress progress = Unpack(word);
    lanes[kLaneNames[i]] = {
        {"point", PointName(progress.point)}, {"step", progress.step}, {"count", progress.count}};
  }
  out["lanes"] = std::move(lanes);
  out["last_step"] = page.last_step.load(std::memory_order_relaxed);
  out["last_step_ns"] = page.last_step_ns.load(std::memory_order_relaxed);
  out["collectives_entered"] = page.collectives_entered.load(std::memory_order_relaxed);
  out["collectives_enqueued"] = page.collectives_enqueued.load(std::memory_order_relaxed);
  out["committed_step"] = page.committed_step.load(std::memory_order_relaxed);
  const uint64_t error = page.checkpoint_error.load(std::memory_order_relaxed);
  out["checkpoint_error"] =
      error == 0 ? Json(nullptr) : Json{{"errno", error >> 32}, {"step", error & 0xFFFFFFFF}};
  const uint64_t refused = page.memory_refused.load(std::memory_order_relaxed);
  out["memory_refused"] =
      refused == 0 ? Json(nullptr) : Json{{"count", refused & 0xFFFFFFFF}, {"step", refused >> 32}};
  return out;
}

}  // namespace

void PageSampler::Record(TrackedProcess& process, bool final) {
  Seen& seen = seen_[&process];
  if (seen.final) return;
  Json fields = PageFields(process);
  std::string text = DumpJson(fields);
  if (text == seen.text && !final) return;
  seen.text = std::move(text);
  seen.final = final;
  if (final) fields["final"] = true;
  recorder_.Observe(events::kPageSampled, std::move(fields));
}

void PageSampler::Final(TrackedProcess& process) { Record(process, true); }

void PageSampler::SampleAll() {
  for (TrackedProcess* process : processes_.All()) {
    if (process->dead) continue;
    Record(*process, false);
    if (process->worker) continue;
    const uint64_t step = process->observed().last_step.load(std::memory_order_relaxed);
    if (process->attempt > advance_.attempt) {
      advance_ = {process->attempt, step, MonoNow()};
    } else if (process->attempt == advance_.attempt && step > advance_.step) {
      advance_.step = step;
      advance_.moved = MonoNow();
    }
  }
}

}  // namespace shakedown
