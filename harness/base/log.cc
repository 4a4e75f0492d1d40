#include "harness/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace shakedown {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void InitLog(std::string_view name) {
  auto logger = std::make_shared<spdlog::logger>(std::string(name),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %n %l: %v");
  const char* wanted = std::getenv("SHAKEDOWN_LOG_LEVEL");
  const std::string level = wanted ? wanted : "warning";
  logger->set_level(level == "debug"   ? spdlog::level::debug
                    : level == "info"  ? spdlog::level::info
                    : level == "error" ? spdlog::level::err
                                       : spdlog::level::warn);
  spdlog::set_default_logger(logger);
}

void Log(LogLevel level, std::string_view message) { spdlog::log(ToSpdlog(level), "{}", message); }

}  // namespace shakedown
