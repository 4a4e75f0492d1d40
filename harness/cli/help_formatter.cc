#include "harness/cli/help_formatter.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "harness/base/file.h"
#include "harness/base/text.h"

namespace shakedown::cli {
namespace {

constexpr int kWidth = 80;
constexpr int kNameColumn = 24;

// Joins lines into paragraphs and wraps those. Empty lines stay, and so does a line that begins
// with a space: an example is copied as it stands.
std::string Reflow(std::string_view text) {
  std::string out;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += Wrap(paragraph, 0, kWidth) + "\n";
    paragraph.clear();
  };
  const std::string copy = std::string(text) + "\n";
  for (const std::string_view line : SplitLines(copy).complete) {
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      out += std::string(line) + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
  }
  end_paragraph();
  out.erase(out.find_last_not_of('\n') + 1);
  return out + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kNameColumn); }
  std::string make_description(const CLI::App* app) const override {
    return Reflow(app->get_description());
  }
  std::string make_footer(const CLI::App* app) const override { return Reflow(app->get_footer()); }
  std::string make_option_desc(const CLI::Option* option) const override {
    return Wrap(CLI::Formatter::make_option_desc(option), 0, kWidth - kNameColumn);
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    std::string name = "  " + sub->get_name();
    name.resize(kNameColumn, ' ');
    return name + Wrap(sub->get_description(), kNameColumn, kWidth) + "\n";
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace shakedown::cli
