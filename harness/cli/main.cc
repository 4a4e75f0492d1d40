// shakedown: the command line. Each command is a file of its own; here the command line is taken
// apart and errors in it are reported.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/help_formatter.h"
#include "harness/wire/run_dir.h"

namespace shakedown::cli {
namespace {

constexpr char kAbout[] =
    "Breaks a distributed training job on purpose, watches what the job does about it, and proves\n"
    "whether it recovered: a killed rank, a hung collective, memory or a disk that is full, slow\n"
    "data should cost minutes and not a model.";

constexpr char kFirstSteps[] =
    "First commands:\n"
    "  shakedown list scenarios          what there is to run\n"
    "  shakedown explain rank.kill       one fault, check, point or scenario in full\n"
    "  shakedown plan rank_killed        what a run would touch; starts nothing\n"
    "  shakedown run rank_killed         break the reference job, and judge it\n"
    "  shakedown suite smoke             the control and the first faults\n"
    "\n"
    "Exit statuses of run, suite and check: 0 PASS, 1 FAIL, 2 usage or scenario error (nothing "
    "was\n"
    "started), 3 INVALID, 4 INCONCLUSIVE, 5 ERROR, 6 DIRTY, 77 all SKIPPED, 130 / 143 / 129 ended "
    "by\n"
    "Ctrl-C, SIGTERM or a closed terminal. Other commands: 0, 2 usage, 5 error; their --help says\n"
    "more.\n"
    "\n"
    "Results go to stdout, progress to stderr. With --json every command prints JSON, errors too.";

std::vector<Command> AllCommands() {
  return {
#define SHAKEDOWN_COMMAND(name) commands::name(),
#include "harness/cli/commands.def"
#undef SHAKEDOWN_COMMAND
  };
}

bool IsTerminal(int fd) { return ::isatty(fd) == 1; }

Output DetectOutput() {
  Output output;
  const char* const no_color = std::getenv("NO_COLOR");
  output.color = IsTerminal(STDOUT_FILENO) && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (IsTerminal(STDOUT_FILENO) && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    output.width = size.ws_col;
  }
  return output;
}

int UsageError(const Output& output, std::string text, std::string message,
               std::optional<std::string> nearest) {
  if (output.json) {
    return ReportProblems(output, {{"", 0, 0, std::move(text), std::move(message), nearest}});
  }
  std::fprintf(stderr, "shakedown: %s%s\n", Escape(message).c_str(),
               nearest ? (" (did you mean '" + *nearest + "'?)").c_str() : "");
  std::fputs("`shakedown --help` lists the commands; each has a --help of its own\n", stderr);
  return kExitUsage;
}

// A name without a character would be looked up like any other, with an answer that helps nobody.
void RefuseEmptyNames(CLI::App& command) {
  for (CLI::Option* const argument : command.get_options()) {
    if (!argument->get_positional()) continue;
    argument->check([](const std::string& name) -> std::string {
      return name.empty() ? "the name is empty" : "";
    });
  }
}

int PrintVersion(const Output& output) {
  if (output.json) {
    PrintJson({{"schema_version", kSchemaVersion}, {"version", SHAKEDOWN_VERSION}});
  } else {
    std::puts("shakedown " SHAKEDOWN_VERSION);
  }
  return kExitPass;
}

// Words that begin with dashes and belong to the command that was meant.
std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

int ReportParseError(const CLI::App& app, const CLI::ParseError& error, const Output& output,
                     const std::vector<std::string>& arguments) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const auto known = OptionNames(command);
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || std::ranges::find(known, name) != known.end()) continue;
    return UsageError(output, argument, "unknown option '" + name + "'", NearestName(name, known));
  }
  std::string message = error.what();
  message = message.substr(0, message.find('\n'));
  if (!chosen.empty()) message = chosen.front()->get_name() + ": " + message;
  return UsageError(output, "", std::move(message), std::nullopt);
}

// Buffered results may still fail to leave (a full disk): an exit status of 0 would be a lie.
int Flush(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fprintf(stderr, "shakedown: cannot write the results to stdout: %s\n",
               DescribeErrno(errno).c_str());
  return exit_code == kExitPass ? kExitError : exit_code;
}

int Main(int argc, char** argv) {
  InitLog("shakedown");
  Output output = DetectOutput();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  output.json = std::ranges::find(arguments, "--json") != arguments.end();
  const std::vector<Command> all = AllCommands();
  std::vector<std::string> names;
  for (const Command& command : all) names.emplace_back(command.name);
  if (!arguments.empty() && !arguments[0].starts_with("-") &&
      std::ranges::find(names, arguments[0]) == names.end()) {
    return UsageError(output, arguments[0], "unknown command '" + arguments[0] + "'",
                      NearestName(arguments[0], names));
  }

  CLI::App app(kAbout, "shakedown");
  app.formatter(MakeHelpFormatter());
  app.footer(kFirstSteps);
  app.set_version_flag("--version", "shakedown " SHAKEDOWN_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<const CLI::App*, Action>> actions;
  for (const Command& command : all) {
    CLI::App* const sub =
        app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(std::string(command.details));
    sub->add_flag("--json", output.json, "print the result, or the error, as JSON");
    actions.emplace_back(sub, command.declare(*sub));
    RefuseEmptyNames(*sub);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    return PrintVersion(output);
  } catch (const CLI::Success& e) {  // --help
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return ReportParseError(app, e, output, arguments);
  }
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return action(output);
  }
  return kExitUsage;
}

}  // namespace
}  // namespace shakedown::cli

int main(int argc, char** argv) { return shakedown::cli::Flush(shakedown::cli::Main(argc, argv)); }
