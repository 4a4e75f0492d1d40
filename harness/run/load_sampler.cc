#include "harness/run/load_sampler.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "harness/base/file.h"

namespace shakedown {
namespace {

// "some avg10=" of /proc/pressure/cpu (Linux 4.20, CONFIG_PSI): share of time in percent in which a
// runnable task waited for a CPU. Null where the kernel does not account for it.
Json CpuPressure() {
  const Result<std::string> text = ReadFile("/proc/pressure/cpu");
  if (!text) return nullptr;
  const size_t at = text->find("avg10=");
  return at == std::string::npos ? Json(nullptr)
                                 : Json(std::strtod(text->c_str() + at + 6, nullptr));
}

// Field 8 of the first line of /proc/stat: ticks that the hypervisor gave to others.
Json StealTicks() {
  const Result<std::string> text = ReadFile("/proc/stat");
  unsigned long long t[8] = {};
  if (!text || std::sscanf(text->c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0],
                           &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) != 8) {
    return nullptr;
  }
  return t[7];
}

}  // namespace

void LoadSampler::Sample() {
  double load[1] = {0};
  if (::getloadavg(load, 1) != 1) load[0] = -1;
  recorder_.Observe(events::kLoadSampled, {{"load1", load[0]},
                                           {"cpus", ::sysconf(_SC_NPROCESSORS_ONLN)},
                                           {"pressure_some_avg10", CpuPressure()},
                                           {"steal_ticks", StealTicks()},
                                           {"slip_ms", ToMs(std::exchange(slip_, {}))}});
}

}  // namespace shakedown
