#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "harness/base/text.h"
#include "harness/cli/catalog_entries.h"
#include "harness/cli/command.h"
#include "harness/scenario/library.h"
#include "harness/scenario/parse.h"
#include "harness/wire/run_dir.h"

namespace shakedown::cli {
namespace {

// What is printed below the heading: what all kinds have, then the kind's own.
std::vector<std::pair<std::string, std::string>> Lines(const Entry& entry) {
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("summary", entry.summary);
  lines.emplace_back("not available", entry.why_not);
  lines.emplace_back("level", entry.level);
  lines.emplace_back("better with", entry.better);
  std::string classes;
  for (const std::string& name : entry.classes) classes += (classes.empty() ? "" : ", ") + name;
  lines.emplace_back("classes", entry.kind == "class" ? "" : classes);
  lines.emplace_back("file", entry.path);
  lines.insert(lines.end(), entry.details.begin(), entry.details.end());
  std::erase_if(lines, [](const auto& line) { return line.second.empty(); });
  return lines;
}

void Print(const Entry& entry, int width) {
  std::printf("%s (%s)\n", Escape(entry.name).c_str(), entry.kind.c_str());
  const auto lines = Lines(entry);
  size_t label_width = 0;
  for (const auto& [label, text] : lines) label_width = std::max(label_width, label.size());
  const int indent = static_cast<int>(label_width) + 4;
  for (const auto& [label, text] : lines) {
    if (text.starts_with('\n')) {  // a page: as it is
      std::fputs(EscapeLines(text).c_str(), stdout);
      continue;
    }
    std::printf("  %-*s  %s\n", static_cast<int>(label_width), label.c_str(),
                Wrap(Escape(text), indent, width).c_str());
  }
}

Json ToJson(const Entry& entry) {
  Json out = {{"kind", entry.kind}, {"name", entry.name}, {"available", entry.available}};
  Json details = Json::object();
  for (const auto& [label, text] : Lines(entry)) details[label] = text;
  out.update(details);
  return out;
}

// A scenario is also known by its short name.
bool Matches(const Entry& entry, const std::string& name) {
  return entry.name == name || (entry.kind == "scenario" && entry.name.ends_with("/" + name));
}

int Explain(const std::string& name, const Output& output) {
  std::vector<Entry> matches;
  std::vector<std::string> known;
  for (const Listing& listing : Listings()) {
    for (Entry& entry : listing.entries()) {
      known.push_back(entry.name);
      if (Matches(entry, name)) matches.push_back(std::move(entry));
    }
  }
  if (const auto file = FindScenario(name); matches.empty() && file) {
    const ParsedScenario parsed = ParseScenarioFile(*file);
    if (!parsed.scenario) return ReportProblems(output, parsed.problems);
    matches.push_back(ScenarioEntry(*parsed.scenario));
  }
  if (matches.empty()) {
    return ReportProblems(
        output, {{"explain", 0, 0, name,
                  "nothing is called '" + name + "' (`shakedown list` shows what there is)",
                  NearestName(name, known)}});
  }
  if (output.json) {
    Json entries = Json::array();
    for (const Entry& entry : matches) entries.push_back(ToJson(entry));
    PrintJson({{"schema_version", kSchemaVersion}, {"name", name}, {"entries", entries}});
    return kExitPass;
  }
  for (size_t i = 0; i < matches.size(); ++i) {
    if (i > 0) std::puts("");
    Print(matches[i], output.width);
  }
  return kExitPass;
}

}  // namespace

Command commands::explain() {
  return {"explain", "one fault, scenario, check, point, class, mechanism or runbook in full",
          "A name that several kinds have is explained for each; what a run of a scenario would\n"
          "touch is told by `shakedown plan`. Everything comes from the\n"
          "declarations that the program itself uses.\n\n"
          "Examples:\n"
          "  shakedown explain rank.kill\n"
          "  shakedown explain resume_equal\n"
          "  shakedown explain collective.enter\n"
          "  shakedown explain my_scenario.yaml\n\n"
          "Exit status: 0, 2 there is nothing of that name, or the scenario is not valid.\n",
          [](CLI::App& app) -> Action {
            auto name = std::make_shared<std::string>();
            app.add_option("NAME", *name, "what `shakedown list` shows, or a scenario file")
                ->required();
            return [name](const Output& output) { return Explain(*name, output); };
          }};
}

}  // namespace shakedown::cli
