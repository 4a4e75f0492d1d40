// What the exception of a failed collective says: a peer that is gone, or one that did not come.
#pragma once

#include <string_view>

namespace shakedown {

enum class CollectiveFailure {
  kNone,      // the text is not that of a failed collective
  kPeerLost,  // a connection broke: the process at the other end is gone
  kTimeout,   // nobody is known to be gone, but the limit passed
};

// From the text, because Gloo's exceptions have no header in the LibTorch wheel and no type that
// tells the two apart. The texts are those of Gloo in LibTorch 2.11 (transport/tcp/pair.cc and
// unbound_buffer.cc) and of c10d's stores.
CollectiveFailure ClassifyCollectiveFailure(std::string_view what);

}  // namespace shakedown
