#include "harness/run/numerics.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "harness/wire/environment.h"

namespace shakedown {

std::vector<std::pair<std::string, std::string>> PinnedNumerics() {
  // The highest level that nearly all training hosts share, so that a reference made on one machine
  // holds on the next.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return {{env::kCpuCapability, avx2 ? "avx2" : "default"},
          {env::kMklCbwr, "COMPATIBLE"},
          {env::kOmpThreads, "1"},
          {env::kMklThreads, "1"}};
}

Json NumericsRecord() {
  Json out = Json::object();
  for (const auto& [name, value] : PinnedNumerics()) out[name] = value;
  return out;
}

Json MachineRecord() {
  utsname name{};
  ::uname(&name);
  return {{"cpus", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"kernel", std::string(name.release)},
          {"architecture", std::string(name.machine)},
          {"root", ::geteuid() == 0}};
}

}  // namespace shakedown
