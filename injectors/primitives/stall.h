// A rank that stops at a point and stays alive: what rank.stall and collective.never_return share.
#pragma once

#include <memory>

#include "injectors/injector.h"

namespace shakedown {

std::unique_ptr<Injector> MakeStall(const Injection& injection, const Availability& means);

}  // namespace shakedown
