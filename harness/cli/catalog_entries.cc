#include "harness/cli/catalog_entries.h"

#include <algorithm>
#include <filesystem>

#include "analysis/checks/catalog.h"
#include "harness/base/file.h"
#include "harness/plan/make_plan.h"
#include "harness/plan/print_plan.h"
#include "harness/scenario/library.h"
#include "harness/scenario/parse.h"
#include "harness/scenario/vocabulary.h"
#include "injectors/catalog.h"

namespace shakedown::cli {
namespace {

template <typename Range>
std::string Joined(const Range& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

std::vector<std::string> PointNamesOf(const Fault& fault) {
  std::vector<std::string> names;
  for (const Point point : fault.points) names.emplace_back(PointName(point));
  return names;
}

std::string ParamText(const ParamSpec& spec) {
  std::string out(spec.sentence);
  if (!spec.choices.empty()) out += " One of " + Joined(spec.choices) + ".";
  if (!spec.minimum.empty()) out += " At least " + std::string(spec.minimum) + ".";
  if (!spec.maximum.empty()) out += " At most " + std::string(spec.maximum) + ".";
  if (!spec.default_text.empty()) {
    out += " Default: " + std::string(spec.default_text) + ".";
  } else if (!spec.optional) {
    out += " Required.";
  }
  return out;
}

Entry FaultEntry(const Fault& fault) {
  const Availability means = fault.available(DetectMachine());
  Entry entry{"fault", fault.full_name(), "", std::string(fault.summary)};
  entry.available = means.available;
  entry.why_not = means.why_not;
  entry.level = ToString(means.available ? means.level : fault.level);
  entry.better = means.better;
  entry.classes.assign(fault.classes.begin(), fault.classes.end());
  const bool by_itself = fault.ends == Ends::kWithProcess;
  entry.details = {
      {"why", std::string(fault.level_why)},
      {"means here", means.available ? means.means : "none"},
      {"needs", std::string(fault.needs)},
      {"acts on", fault.target == TargetKind::kRank ? "a rank" : "a data worker"},
      {"points", Joined(PointNamesOf(fault))},
      {"touches", std::string(fault.radius)},
      {"hold", fault.needs_hold ? "needed: it acts from outside while its target waits" : ""},
      {"ends", by_itself ? "with the process that it acts on" : "by its undo recipe"},
      {"excludes", Joined(fault.excludes)},
      {"you see", std::string(fault.operator_sees)},
      {"mechanism", std::string(fault.mechanism)},
      {"runbook", std::string(fault.runbook)},
  };
  for (const ParamSpec& spec : fault.params) {
    entry.details.emplace_back("with " + std::string(spec.name), ParamText(spec));
  }
  return entry;
}

std::vector<Entry> Faults() {
  std::vector<Entry> entries;
  for (const Fault* fault : FaultCatalog()) entries.push_back(FaultEntry(*fault));
  return entries;
}

Entry FileEntry(const std::filesystem::path& file) {
  const ParsedScenario parsed = ParseScenarioFile(file);
  if (parsed.scenario) return ScenarioEntry(*parsed.scenario);
  Entry entry{"scenario", ListedName(file), file, ""};
  entry.available = false;
  entry.why_not = Describe(parsed.problems.front());
  return entry;
}

std::vector<Entry> Scenarios() {
  std::vector<Entry> entries;
  for (const auto& file : ScenarioFiles(ScenarioFolder())) entries.push_back(FileEntry(file));
  return entries;
}

std::vector<Entry> Checks() {
  std::vector<Entry> entries;
  for (const CheckInfo* check : CheckCatalog()) {
    Entry entry{"check", std::string(check->name), "", std::string(check->promise)};
    std::vector<std::string_view> needs;
    for (const Need need : check->evidence) needs.push_back(ToString(need));
    entry.details = {
        {"class", std::string(ToString(check->check_class))},
        {"needs", Joined(needs)},
        {"by time", check->by_time ? "yes: under overload a FAIL is INCONCLUSIVE" : ""}};
    for (const CheckParameter& parameter : check->parameters) {
      entry.details.emplace_back(
          std::string(parameter.key),
          std::string(parameter.meaning) + "; otherwise: " + std::string(parameter.otherwise));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<Entry> Points() {
  std::vector<Entry> entries;
  for (const PointInfo& point : kPoints) {
    Entry entry{"point", std::string(point.name), "", std::string(point.sentence)};
    std::vector<std::string> faults;
    for (const Fault* fault : FaultCatalog()) {
      if (std::ranges::find(fault->points, point.point) != fault->points.end()) {
        faults.push_back(fault->full_name());
      }
    }
    entry.details = {{"phase", std::string(point.phase)}, {"faults", Joined(faults)}};
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<Entry> Classes() {
  std::vector<Entry> entries;
  for (const NamedSentence& named : FailureClasses()) {
    Entry entry{"class", std::string(named.name), "", std::string(named.sentence)};
    std::vector<std::string> faults;
    for (const Fault* fault : FaultCatalog()) {
      if (std::ranges::find(fault->classes, named.name) != fault->classes.end()) {
        faults.push_back(fault->full_name());
      }
    }
    entry.classes = {entry.name};
    entry.details = {{"faults", faults.empty() ? "none yet" : Joined(faults)}};
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<Entry> MechanismEntries() {
  std::vector<Entry> entries;
  for (const NamedSentence& named : Mechanisms()) {
    entries.push_back({"mechanism", std::string(named.name), "", std::string(named.sentence)});
  }
  return entries;
}

// A page's summary is its heading.
std::vector<Entry> Runbooks() {
  std::vector<Entry> entries;
  std::error_code ignored;  // without the folder there are no runbooks
  for (const auto& file : std::filesystem::directory_iterator(SHAKEDOWN_RUNBOOK_FOLDER, ignored)) {
    if (file.path().extension() != ".md") continue;
    const Result<std::string> text = ReadFile(file.path());
    Entry entry{"runbook", file.path().stem(), file.path(), ""};
    if (!text) {
      entry.available = false;
      entry.why_not = text.error().message;
    } else {
      std::string_view heading = std::string_view(*text).substr(0, text->find('\n'));
      heading.remove_prefix(std::min(heading.find_first_not_of("# "), heading.size()));
      entry.summary = heading;
      entry.details = {{"page", "\n" + *text}};
    }
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

}  // namespace

Entry ScenarioEntry(const Scenario& scenario) {
  Entry entry{"scenario", ListedName(scenario.path), scenario.path, ""};
  entry.summary = scenario.summary;
  entry.classes = scenario.classes;
  const Result<Plan> plan = MakePlan(scenario, 1, DetectMachine());
  if (!plan) {
    entry.available = false;
    entry.why_not = plan.error().message;
    return entry;
  }
  std::vector<std::string> faults;
  std::vector<std::string> levels;
  for (const Injection& injection : plan->injections) {
    faults.push_back(injection.fault);
    if (std::ranges::find(levels, injection.level) == levels.end()) {
      levels.push_back(injection.level);
    }
    if (!injection.better.empty()) entry.better = injection.better;
  }
  entry.level = Joined(levels);
  entry.details = {{"faults", faults.empty() ? "none" : Joined(faults)},
                   {"outcome", std::string(ToString(scenario.expect.outcome))},
                   {"mechanism", scenario.expect.diagnosis.mechanism}};
  return entry;
}

const std::vector<Listing>& Listings() {
  static const std::vector<Listing> kListings = {
      {"faults", &Faults},    {"scenarios", &Scenarios}, {"checks", &Checks},
      {"points", &Points},    {"classes", &Classes},     {"mechanisms", &MechanismEntries},
      {"runbooks", &Runbooks}};
  return kListings;
}

}  // namespace shakedown::cli
