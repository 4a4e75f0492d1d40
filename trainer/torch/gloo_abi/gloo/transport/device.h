// Declarations only; the definitions are in libtorch_cpu.so. See ../../README.md.
#pragma once

namespace gloo::transport {

class Device;

// Held by std::unique_ptr in c10d, so its destructor has to be known; it is virtual there and
// exported.
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace gloo::transport
