// The harness's own log, to stderr. Not evidence: evidence goes into the run directory.
#pragma once

#include <string>
#include <string_view>

namespace shakedown {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// `name` is the binary's, and stands before each line. Call once, at the start of main. The level
// comes from SHAKEDOWN_LOG_LEVEL (debug, info, warning, error; default warning).
void InitLog(std::string_view name);
void Log(LogLevel level, std::string_view message);

inline void LogDebug(std::string_view m) { Log(LogLevel::kDebug, m); }
inline void LogInfo(std::string_view m) { Log(LogLevel::kInfo, m); }
inline void LogWarning(std::string_view m) { Log(LogLevel::kWarning, m); }
inline void LogError(std::string_view m) { Log(LogLevel::kError, m); }

}  // namespace shakedown
