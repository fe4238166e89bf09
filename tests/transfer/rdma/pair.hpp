// Two processes' channels in one process, and messages between them, over the loopback fabric.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "fabric/remote/loopback.hpp"
#include "random_layout.hpp"
#include "transfer/rdma/channel.hpp"

namespace gapless::tests {

using namespace transfer::rdma;

inline constexpr Scheme every_scheme[] = {Scheme::pipelined, Scheme::gather_write, Scheme::scatter_read,
                                          Scheme::multi_write};

inline unsigned only(Scheme scheme) { return 1u << static_cast<unsigned>(scheme); }

/// One side's memory, filled at random, and where each packed byte lies in it.
class Arena {
 public:
  Arena(const Sample& sample, Offset count, Offset extent, std::uint64_t seed)
      : layout_(sample.layout), map_(repeated_map(sample.map, count, extent)) {
    const auto [low, high] = std::minmax_element(map_.begin(), map_.end());
    origin_ = map_.empty() ? 0 : guard - *low;
    bytes_.resize(static_cast<std::size_t>(map_.empty() ? 0 : *high - *low + 1) + 2 * guard);
    std::mt19937_64 random(seed);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random());
    memory_ = memory_of(layout_, layout::facts_of(*layout_), {count, extent}, bytes_.data() + origin_);
  }

  const Memory& memory() const { return memory_; }
  layout::Mode outer() const { return memory_.outer; }
  const LayoutPointer& layout() const { return layout_; }
  std::vector<std::byte>& bytes() { return bytes_; }

  /// What the bytes are to be once `sender` has sent all of its message here.
  std::vector<std::byte> expected_from(const Arena& sender) const {
    auto expected = bytes_;
    for (std::size_t k = 0; k < map_.size(); ++k) {
      expected[static_cast<std::size_t>(origin_ + map_[k])] =
          sender.bytes_[static_cast<std::size_t>(sender.origin_ + sender.map_[k])];
    }
    return expected;
  }

 private:
  static constexpr Offset guard = 64;
  LayoutPointer layout_;
  std::vector<Offset> map_;
  Offset origin_ = 0;
  std::vector<std::byte> bytes_;
  Memory memory_;
};

/// `blocks` blocks of `length` bytes, `stride` bytes apart.
inline Sample vector_sample(Offset blocks, Offset length, Offset stride) {
  Sample sample;
  for (Offset i = 0; i < blocks; ++i) {
    for (Offset k = 0; k < length; ++k) sample.map.push_back(i * stride + k);
  }
  sample.layout = layout::repeat(layout::block(0, length), blocks, stride);
  return sample;
}

/// The same, with messages of as many segments as there may be.
inline Options in_segments(Options options) {
  options.profile.overlap = 1;
  options.profile.operation_ns = 100;
  return options;
}

class Pair {
 public:
  explicit Pair(const fabric::LoopbackShape& shape = {}, const Options& options = {})
      : left(network_, shape), right(network_, shape) {
    left_peer = left.open_peer();
    right_peer = right.open_peer();
    EXPECT_EQ(left.connect(left_peer, right.local_address(right_peer)), fabric::Status::ok);
    EXPECT_EQ(right.connect(right_peer, left.local_address(left_peer)), fabric::Status::ok);
    sender = std::make_unique<Channel>(left, in_segments(options));
    receiver = std::make_unique<Channel>(right, in_segments(options));
    EXPECT_TRUE(sender->ok() && receiver->ok());
  }

  struct Outcome {
    Result sent, received;
    Scheme scheme;
  };

  /// One message from left to right; `begun` is called when both sides have started.
  template <class Begun>
  Outcome send(const Memory& from, const Memory& to, unsigned allowed, const Begun& begun) {
    Message* const out = sender->send(left_peer, from);
    Message* const in = out == nullptr ? nullptr : receiver->receive(right_peer, to, out->offer(), allowed);
    EXPECT_NE(in, nullptr);
    if (in == nullptr) return {Result::failed, Result::failed, Scheme::pipelined};
    Outcome outcome{Result::under_way, Result::under_way, in->scheme()};
    begun();
    out->start(in->reply(), to.layout, to.outer);
    // A loop that ends: whatever happens in here takes fewer rounds.
    for (int i = 0; i < 1'000'000 && (outcome.sent == Result::under_way || outcome.received == Result::under_way);
         ++i) {
      sender->progress();
      receiver->progress();
      outcome.sent = out->advance();
      outcome.received = in->advance();
    }
    sender->end(out);
    receiver->end(in);
    return outcome;
  }
  Outcome send(const Memory& from, const Memory& to, unsigned allowed = ~0u) {
    return send(from, to, allowed, [] {});
  }

 private:
  fabric::LoopbackNetwork network_;

 public:
  fabric::LoopbackEndpoint left, right;
  int left_peer = -1, right_peer = -1;
  std::unique_ptr<Channel> sender, receiver;
};

struct Message128 {
  Arena from{vector_sample(128, 512, 16384), 1, 0, 1};
  Arena to{vector_sample(128, 512, 1024), 1, 0, 2};
  std::vector<std::byte> expected = to.expected_from(from);
};

inline Options impatient() {
  Options options;
  options.stall_limit = std::chrono::milliseconds(30);
  return options;
}

}  // namespace gapless::tests
