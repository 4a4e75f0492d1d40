// When the job has ended by itself, nothing of it is left.
#include <algorithm>

#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo nothing_left;
namespace {

constexpr std::string_view kName = "nothing_left";
constexpr Need kNeeds[] = {Need::kObserved, Need::kExits, Need::kLeftovers};

// What can be looked for; the first two always must be.
constexpr std::string_view kKinds[] = {"processes", "temporary", "mounts", "shared_memory"};
constexpr int64_t kLeast = 2;

bool Inspected(const Event& event, std::string_view kind) {
  for (const Json& word : Field(event.fields, "inspected")) {
    if (word.is_string() && word.get<std::string>() == kind) return true;
  }
  return false;
}

Finding Check(const CheckInput& in) {
  const Event& event = *in.observed.First(events::kLeftoversInspected);
  const Where where = ObservedEvidence::At(event);
  const Event* exited = in.observed.First(events::kJobExited);
  if (exited == nullptr) return Unclear("the job did not end by itself", {where});
  if (event.t < exited->t) return Unclear("looked before the job had ended", {where});
  int64_t compared = 0;
  for (const std::string_view kind : kKinds) {
    const Json& left = Field(event.fields, kind);
    if (left.is_array() && !left.empty()) {
      return Broke(kName,
                   std::to_string(left.size()) + " " + std::string(kind) +
                       " left by the job: " + DumpJson(left),
                   {where});
    }
    const bool looked = left.is_array() && Inspected(event, kind);
    if (looked) ++compared;
    if (!looked && (kind == kKinds[0] || kind == kKinds[1])) {
      return Unclear(std::string(kind) + " were not looked for", {where});
    }
  }
  Finding finding = Pass("nothing of the job was left", compared, kLeast);
  finding.observed = Field(event.fields, "inspected");
  finding.unit = "kinds of things looked for";
  finding.where = {where};
  return finding;
}

}  // namespace

const CheckInfo nothing_left = {
    .name = kName,
    .promise =
        "After the job ended by itself, no process, temporary file, mount or shared memory "
        "of it is left.",
    .check_class = CheckClass::kCleanUp,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
