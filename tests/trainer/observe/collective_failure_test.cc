// Texts of failed collectives, as LibTorch 2.11 was seen to write them.
#include "trainer/observe/collective_failure.h"

#include <gtest/gtest.h>

namespace shakedown {
namespace {

TEST(CollectiveFailure, ABrokenConnectionIsALostPeer) {
  for (const char* text :
       {"[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Read error [127.0.0.1]:6563: "
        "Connection reset by peer",
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer "
        "[127.0.0.1]:30435"}) {
    EXPECT_EQ(ClassifyCollectiveFailure(text), CollectiveFailure::kPeerLost) << text;
  }
}

TEST(CollectiveFailure, APassedLimitIsATimeout) {
  for (const char* text :
       {"[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting "
        "3000ms for recv operation to complete",
        "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:129] Timed out waiting "
        "3000ms for send operation to complete"}) {
    EXPECT_EQ(ClassifyCollectiveFailure(text), CollectiveFailure::kTimeout) << text;
  }
}

TEST(CollectiveFailure, OtherErrorsAreNeither) {
  EXPECT_EQ(ClassifyCollectiveFailure(""), CollectiveFailure::kNone);
  EXPECT_EQ(ClassifyCollectiveFailure("mat1 and mat2 shapes cannot be multiplied"),
            CollectiveFailure::kNone);
}

}  // namespace
}  // namespace shakedown
