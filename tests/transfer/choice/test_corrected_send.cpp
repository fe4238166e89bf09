// Which scheme sends take after others have been timed, with times that are injected.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "layout/datatype/datatype.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/corrected_send.hpp"

namespace gapless::tests {
namespace {

using transfer::CorrectedSend;
using transfer::Scheme;

class Corrected : public ::testing::Test {
 protected:
  void SetUp() override { transfer::set_correction(true); }
  void TearDown() override {
    transfer::force_scheme(std::nullopt);
    transfer::set_correction(true);
  }

  /// Sends messages of which packed ones and native ones take so long, and says how many went which way.
  std::map<Scheme, int> send(int messages, double packed_ns, double native_ns, std::uint64_t peer = 1,
                             layout::Offset count = 1) {
    std::map<Scheme, int> ways;
    const transfer::Buffer buffer{&type_, count, nullptr, {}};
    for (int i = 0; i < messages; ++i) {
      CorrectedSend sending(buffer, Scheme::packed, peer);
      ++ways[sending.scheme()];
      const double ns = sending.scheme() == Scheme::packed ? packed_ns : native_ns;
      sending.end(ns, ns);
    }
    return ways;
  }

 private:
  const layout::Datatype vector_ = layout::vector(1000, 8, 64, layout::named(1, 1));
  const transfer::Described type_{vector_.layout, layout::facts_of(*vector_.layout), vector_.extent(), false};
};

TEST_F(Corrected, ASchemeThatIsSlowerThanNativeIsLeftForThatPeerAlone) {
  EXPECT_GT(send(4000, 900, 500)[Scheme::native], 2000);
  EXPECT_LT(send(200, 900, 500)[Scheme::packed], 10);
  EXPECT_EQ(send(60, 900, 500, 2)[Scheme::native], 0);
  EXPECT_EQ(send(60, 900, 500, 1, 2)[Scheme::native], 0);
}

TEST_F(Corrected, ASchemeThatIsFasterStays) { EXPECT_LT(send(10000, 500, 5000, 3)[Scheme::native], 50); }

/// Packed sends are over at once, and their receiver is waited for afterwards.
TEST_F(Corrected, TheTimeUntilTheNextOneIsThatToTheNextOfItsKind) {
  const layout::Datatype vector = layout::vector(1000, 8, 64, layout::named(1, 1));
  const transfer::Described type{vector.layout, layout::facts_of(*vector.layout), vector.extent(), false};
  const transfer::Buffer buffer{&type, 1, nullptr, {}};
  const auto spend = [](std::chrono::microseconds time) {
    const auto end = CorrectedSend::Clock::now() + time;
    while (CorrectedSend::Clock::now() < end) {
    }
  };
  int native = 0;
  for (int i = 0; i < 2000; ++i) {
    CorrectedSend sending(buffer, Scheme::packed, 8);
    const bool is_native = sending.scheme() == Scheme::native;
    native += is_native ? 1 : 0;
    spend(std::chrono::microseconds(is_native ? 20 : 5));
    sending.end();
    if (!is_native) spend(std::chrono::microseconds(95));
  }
  EXPECT_GT(native, 500);
}

TEST_F(Corrected, EveryThreadFindsOutForItself) {
  send(4000, 900, 500, 4);
  std::thread([&] { EXPECT_EQ(send(60, 900, 500, 4)[Scheme::native], 0); }).join();
}

TEST_F(Corrected, ShortMessagesAndForcedSchemesAreLeftAlone) {
  const layout::Datatype byte = layout::named(1, 1), short_vector = layout::vector(100, 8, 64, byte);
  const transfer::Described type{short_vector.layout, layout::facts_of(*short_vector.layout), short_vector.extent(),
                                 false};
  const transfer::Buffer buffer{&type, 1, nullptr, {}};
  for (int i = 0; i < 4000; ++i) {
    CorrectedSend sending(buffer, Scheme::packed, 5);
    EXPECT_EQ(sending.scheme(), Scheme::packed);
    sending.end(i, i);
  }
  transfer::force_scheme(Scheme::packed);
  EXPECT_EQ(send(4000, 900, 1, 6)[Scheme::native], 0);
}

TEST_F(Corrected, AFixedModelIsNotCorrected) {
  transfer::set_correction(false);
  EXPECT_EQ(send(4000, 900, 1, 7)[Scheme::native], 0);
}

}  // namespace
}  // namespace gapless::tests
