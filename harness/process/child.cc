#include "harness/process/child.h"

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/environment.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <algorithm>
#include <cerrno>

namespace shakedown {

namespace asio = boost::asio;
namespace process = boost::process::v2;

namespace {

// Boost.Process hands our signal mask and ignored signals on to the child.
struct ResetSignals {
  template <typename Launcher>
  boost::system::error_code on_exec_setup(Launcher&, const boost::filesystem::path&,
                                          const char* const*) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) ::signal(signal, SIG_DFL);
    return {};
  }
};

struct Stream {
  explicit Stream(asio::io_context& io, size_t limit_bytes) : pipe(io), limit(limit_bytes) {}
  asio::readable_pipe pipe;
  size_t limit;
  std::string text;
  char buffer[1 << 14];

  // Reads to the end, keeping up to the limit: a helper that floods must not block on a full pipe.
  void Read() {
    pipe.async_read_some(asio::buffer(buffer), [this](boost::system::error_code error, size_t n) {
      text.append(buffer, std::min(n, limit - text.size()));
      if (!error) Read();
    });
  }
};

}  // namespace

Result<HelperResult> RunHelper(const HelperRequest& request) {
  const std::string& name = request.argv.at(0);
  const auto program = name.find('/') == std::string::npos
                           ? process::environment::find_executable(name)
                           : process::filesystem::path(name);
  if (program.empty()) return Fail("cannot run '" + name + "': no such program in PATH");
  try {
    asio::io_context io{1};
    Stream out(io, request.output_limit_bytes), err(io, request.output_limit_bytes);
    std::vector<std::string> environment = request.environment;
    for (const auto& entry : process::environment::current()) {
      environment.push_back(entry.string());
    }
    process::process child(
        io, program, std::vector<std::string>(request.argv.begin() + 1, request.argv.end()),
        process::process_stdio{nullptr, out.pipe, err.pipe},
        process::process_environment(environment), ResetSignals{});
    out.Read();
    err.Read();
    bool late = false;
    asio::steady_timer deadline(io, request.deadline);
    deadline.async_wait([&](boost::system::error_code error) {
      if (error) return;
      late = true;
      boost::system::error_code ignored;
      child.terminate(ignored);
      // What the helper started itself may hold the pipes open.
      out.pipe.close(ignored);
      err.pipe.close(ignored);
    });
    child.async_wait([&](boost::system::error_code, int) { deadline.cancel(); });
    io.run();
    if (late) {
      return Fail("'" + name + "' did not end within " + std::to_string(request.deadline.count()) +
                      " ms and was ended",
                  ETIMEDOUT);
    }
    // exit_code() is 9 both for SIGKILL and for exit(9).
    return HelperResult{WaitStatus::FromWord(child.native_exit_code()), std::move(out.text),
                        std::move(err.text)};
  } catch (const std::exception& e) {
    return Fail("cannot run '" + name + "': " + e.what());
  }
}

}  // namespace shakedown
