#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "harness/base/text.h"
#include "harness/cli/catalog_entries.h"
#include "harness/cli/command.h"
#include "harness/wire/run_dir.h"

namespace shakedown::cli {
namespace {

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json ToJson(const Entry& entry) {
  return {{"schema_version", kSchemaVersion}, {"name", entry.name},
          {"path", OrNull(entry.path)},       {"summary", OrNull(entry.summary)},
          {"available", entry.available},     {"why_not", OrNull(entry.why_not)},
          {"level", OrNull(entry.level)},     {"better", OrNull(entry.better)},
          {"classes", entry.classes}};
}

void PrintTable(const std::vector<Entry>& entries, int width) {
  const bool has_level =
      std::ranges::any_of(entries, [](const Entry& e) { return !e.level.empty(); });
  std::vector<std::vector<std::string>> rows = {{"NAME"}};
  if (has_level) rows[0].emplace_back("LEVEL");
  rows[0].emplace_back("SUMMARY");
  for (const Entry& entry : entries) {
    std::vector<std::string> row = {Escape(entry.name)};
    if (has_level) row.push_back(entry.level);
    row.push_back(Escape(entry.available ? entry.summary : "not available: " + entry.why_not));
    rows.push_back(std::move(row));
  }
  std::fputs(Table(rows, width).c_str(), stdout);
  for (const Entry& entry : entries) {
    if (entry.kind != "fault" || entry.better.empty()) continue;
    std::printf("\n%s\n",
                Wrap(Escape(entry.name + ": better with " + entry.better), 0, width).c_str());
  }
}

int List(const std::string& what, const Output& output) {
  const auto& listings = Listings();
  const auto listing = std::ranges::find(listings, what, &Listing::plural);
  if (listing == listings.end()) {
    std::vector<std::string> names;
    std::string message = "there is nothing to list as '" + what + "'; there are";
    for (const Listing& l : listings) {
      message += (names.empty() ? " " : ", ") + std::string(l.plural);
      names.emplace_back(l.plural);
    }
    return ReportProblems(output, {{"list", 0, 0, what, message, NearestName(what, names)}});
  }
  const std::vector<Entry> entries = listing->entries();
  if (!output.json) {
    PrintTable(entries, output.width);
    return kExitPass;
  }
  Json out = Json::array();
  for (const Entry& entry : entries) out.push_back(ToJson(entry));
  PrintJson(out);
  return kExitPass;
}

}  // namespace

Command commands::list() {
  return {"list", "list faults, scenarios, checks, points, classes, mechanisms or runbooks",
          "Says what is available on this machine, at which level, and what would make more of it\n"
          "available.\n\n"
          "Examples:\n"
          "  shakedown list faults\n"
          "  shakedown list scenarios --json\n\n"
          "Exit status: 0, 2 there is no such list.\n",
          [](CLI::App& app) -> Action {
            auto what = std::make_shared<std::string>();
            app.add_option("WHAT", *what,
                           "faults, scenarios, checks, points, classes, mechanisms, runbooks")
                ->required();
            return [what](const Output& output) { return List(*what, output); };
          }};
}

}  // namespace shakedown::cli
