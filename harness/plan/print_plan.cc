#include "harness/plan/print_plan.h"

#include "harness/base/quantity.h"
#include "harness/base/text.h"
#include "injectors/catalog.h"

namespace shakedown {
namespace {

constexpr int kLabelWidth = 12;

std::string TargetText(const Injection& injection) {
  const std::string rank = "rank " + std::to_string(injection.rank);
  return injection.worker ? "data worker " + std::to_string(*injection.worker) + " of " + rank
                          : rank;
}

std::string PlaceText(const Injection& injection) {
  const bool batch = PointPhase(injection.point) == "worker";
  std::string out = std::string(batch ? "batch " : "step ") + std::to_string(injection.step) +
                    ", " + std::string(PointName(injection.point));
  if (injection.occurrence != 1) out += ", occurrence " + std::to_string(injection.occurrence);
  out += ", attempt " + std::to_string(injection.attempt);
  if (injection.committed) {
    out += ", once checkpoint " + std::to_string(*injection.committed) + " is published";
  }
  return out;
}

std::string HowLong(const Injection& injection, const Fault& fault) {
  if (injection.until && injection.duration) {
    return "until " + *injection.until + ", at most " + FormatDuration(*injection.duration);
  }
  if (injection.duration) return FormatDuration(*injection.duration);
  return fault.ends == Ends::kWithProcess ? "until its process ends" : "until the job ends";
}

std::string UndoneBy(const Fault& fault) {
  return fault.ends == Ends::kWithProcess
             ? "itself: it ends with the process that it acts on"
             : "a recipe that is on disk before it goes in, played by controller or reaper";
}

std::string ParamsText(const Injection& injection, const Fault& fault) {
  std::string out;
  for (const ParamSpec& spec : fault.params) {
    const auto value = injection.with.find(std::string(spec.name));
    if (value == injection.with.end()) continue;
    std::string text;
    if (const auto* number = std::get_if<int64_t>(&value->second)) {
      text = spec.type == ParamType::kDuration ? FormatDuration(Nanoseconds(*number))
             : spec.type == ParamType::kBytes  ? FormatBytes(*number)
                                               : std::to_string(*number);
    } else if (const auto* word = std::get_if<std::string>(&value->second)) {
      text = *word;
    }
    out += (out.empty() ? "" : ", ") + std::string(spec.name) + " " + text;
  }
  return out;
}

Nanoseconds LeastTrainingTime(const JobConfig& job) { return job.steps * job.step_time; }

const Fault& FaultOf(const Injection& injection) {
  const Fault* const fault = FindFault(injection.fault);
  SHAKEDOWN_ASSERT(fault != nullptr);
  return *fault;
}

class Printer {
 public:
  explicit Printer(int width) : width_(width) {}

  void Line(std::string_view label, std::string_view text) {
    std::string padded(label);
    padded.resize(kLabelWidth, ' ');
    out_ += padded + Wrap(Escape(text), kLabelWidth, width_) + "\n";
  }
  void Heading(std::string_view text) { out_ += "\n" + Wrap(Escape(text), 0, width_) + "\n"; }
  std::string text() && { return std::move(out_); }

 private:
  int width_;
  std::string out_;
};

void PrintInjection(const Injection& injection, Nanoseconds hold_limit, Printer* print) {
  const Fault& fault = FaultOf(injection);
  print->Heading("injection " + std::to_string(injection.id) + ": " + injection.fault);
  print->Line("  what", fault.summary);
  print->Line("  target", TargetText(injection));
  print->Line("  where", PlaceText(injection));
  const std::string params = ParamsText(injection, fault);
  if (!params.empty()) print->Line("  with", params);
  print->Line("  how", injection.means + " (" + injection.level + ")");
  if (!injection.better.empty()) print->Line("  better", injection.better);
  print->Line("  touches", fault.radius);
  print->Line("  lasts", HowLong(injection, fault));
  print->Line("  undone by", UndoneBy(fault));
  if (injection.hold == HoldMode::kAuto) {
    print->Line("  hold", "at most " + FormatDuration(hold_limit) +
                              ", imitated on the other ranks by decoys");
  }
}

}  // namespace

std::string PlanText(const Plan& plan, int width) {
  const JobConfig& job = plan.scenario.job;
  Printer print(width);
  print.Line("scenario", plan.scenario.name + ": " + plan.scenario.summary);
  print.Line("seed", std::to_string(plan.seed));
  print.Line("digest", plan.digest);
  print.Line("job", job.trainer + " (" + job.model + " on " + job.data + "), " +
                        std::to_string(job.ranks) + " ranks, " + std::to_string(job.steps) +
                        " steps of at least " + FormatDuration(job.step_time));
  for (const Injection& injection : plan.injections) {
    PrintInjection(injection, plan.hold_limit, &print);
  }
  if (plan.injections.empty()) print.Heading("no injection: the job runs undisturbed");
  print.Heading("besides");
  print.Line("  processes", "only those that the run starts itself");
  print.Line("  files", "a new run directory, which stays");
  if (plan.private_fs_bytes) {
    print.Line("  mounts", "a private filesystem of " + FormatBytes(*plan.private_fs_bytes) +
                               " for checkpoints, in a mount namespace of the run");
  }
  print.Line("  cost", "at least " + FormatDuration(LeastTrainingTime(job)) +
                           " of training; twice as much before it, when no reference run of this "
                           "job is kept");
  return std::move(print).text();
}

Json PlanJson(const Plan& plan) {
  Json out = ToJson(plan);
  out["touches"] = Json::array();
  for (const Injection& injection : plan.injections) {
    const Fault& fault = FaultOf(injection);
    out["touches"].push_back({{"injection", injection.id},
                              {"target", TargetText(injection)},
                              {"where", PlaceText(injection)},
                              {"what", std::string(fault.radius)},
                              {"how_long", HowLong(injection, fault)},
                              {"undone_by", UndoneBy(fault)}});
  }
  out["cost"] = {{"least_training_ms", ToMs(LeastTrainingTime(plan.scenario.job))},
                 {"reference_runs_when_not_kept", 2}};
  return out;
}

}  // namespace shakedown
