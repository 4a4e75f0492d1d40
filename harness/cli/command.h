// One subcommand of `shakedown`.
//
// To add one: a file harness/cli/command_NAME.cc that defines commands::NAME(), and one line in
// commands.def, from which CMake takes the source and main.cc the command. A part that it needs
// goes into DEPS in CMakeLists.txt.
//
//   Command commands::greet() {
//     return {"greet", "say hello", "Example:\n  shakedown greet Ada\n", [](CLI::App& app) ->
//     Action {
//               auto name = std::make_shared<std::string>();
//               app.add_option("NAME", *name, "who is greeted")->required();
//               return [name](const Output& output) { return Greet(*name, output); };
//             }};
//   }
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "harness/base/status.h"
#include "harness/scenario/problem.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/json.h"

namespace CLI {
class App;
}

namespace shakedown::cli {

// How to print. Results go to stdout, progress and messages for people to stderr.
struct Output {
  bool json = false;   // --json, which main declares for every command
  bool color = false;  // stdout is a terminal and NO_COLOR is not set
  int width = 80;      // columns of the terminal; 80 when stdout is none
};

// Carries the command out once the command line has been understood. Returns the exit status.
using Action = std::function<int(const Output&)>;

struct Command {
  std::string_view name;
  std::string_view summary;  // its line in `shakedown --help`, in lower case, without a full stop
  std::string_view details;  // end of its own --help: what it prints, examples, exit statuses
  // Declares arguments and options on `app`; what they are stored in has to live as long as the
  // action (a shared_ptr captured by it).
  Action (*declare)(CLI::App& app);
};

namespace commands {
#define SHAKEDOWN_COMMAND(name) Command name();
#include "harness/cli/commands.def"
#undef SHAKEDOWN_COMMAND
}  // namespace commands

// Prints a result with --json: indented, on stdout.
void PrintJson(const Json& json);

// Reports what kept the command from its work and returns `exit_code`: with --json as
// {schema_version, error: {file, line, column, message, nearest}, errors: [...]} on stdout, else as
// lines on stderr. REQUIRES: `problems` is not empty.
int ReportProblems(const Output& output, const std::vector<Problem>& problems,
                   int exit_code = kExitUsage);
int ReportError(const Output& output, const Error& error, int exit_code);
// Lines on stderr about what may be meant; nothing with --json, whose results hold them.
void ReportWarnings(const Output& output, const std::vector<Problem>& warnings);

}  // namespace shakedown::cli
