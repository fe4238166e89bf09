// Messages between two processes over a real fabric: both make the same arenas from the same seeds, so that the
// receiver knows what it must get. Offers and replies go through the pipe.
#pragma once

#include "pair.hpp"
#include "transfer/rdma/scheme.hpp"
#include "two_processes.hpp"

namespace gapless::tests {

class Side {
 public:
  Side(std::unique_ptr<fabric::Endpoint> endpoint, Wire& wire, bool is_sender, const Options& options = {})
      : endpoint_(std::move(endpoint)), wire_(wire), is_sender_(is_sender) {
    peer_ = endpoint_->open_peer();
    const auto mine = endpoint_->local_address(peer_);
    EXPECT_FALSE(mine.empty());
    wire_.put(mine.size());
    wire_.put_bytes(mine);
    std::vector<std::byte> theirs(wire_.get<std::size_t>([] {}));
    wire_.get_bytes(theirs, [] {});
    EXPECT_EQ(endpoint_->connect(peer_, theirs), fabric::Status::ok);
    wire_.meet([] {});
    channel_ = std::make_unique<Channel>(*endpoint_, in_segments(options));
    EXPECT_TRUE(channel_->ok());
    wire_.meet([this] { channel_->progress(); });
  }

  Channel& channel() { return *channel_; }
  const fabric::Limits& limits() const { return endpoint_->limits(); }
  bool is_sender() const { return is_sender_; }

  /// One message; the receiver looks at every byte of its arena. `spoil` may change what the sender is told.
  template <class Spoil>
  Result move(Arena& from, Arena& to, unsigned allowed, const Spoil& spoil) {
    const auto progress = [this] { channel_->progress(); };
    Message* message = nullptr;
    const auto expected = to.expected_from(from);
    if (is_sender_) {
      message = channel_->send(peer_, from.memory());
      wire_.put(message->offer());
      Reply reply = wire_.get<Reply>(progress);
      spoil(reply);
      message->start(reply, to.layout(), to.outer());
    } else {
      const Offer offer = wire_.get<Offer>(progress);
      message = channel_->receive(peer_, to.memory(), offer, allowed);
      EXPECT_NE(message, nullptr);
      if (message == nullptr) return Result::refused;
      wire_.put(message->reply());
    }
    while (message->advance() == Result::under_way) {
      if (advances_left_ == 0) kill(getpid(), SIGKILL);
      --advances_left_;
      channel_->progress();
      sched_yield();
    }
    const Result result = message->result();
    channel_->end(message);
    if (!is_sender_ && result == Result::ok) {
      EXPECT_TRUE(to.bytes() == expected);
    }
    return result;
  }
  Result move(Arena& from, Arena& to, unsigned allowed = ~0u) {
    return move(from, to, allowed, [](Reply&) {});
  }

  /// This process is killed in the middle of a message.
  void die_after(int advances) { advances_left_ = advances; }

  void meet() {
    wire_.meet([this] { channel_->progress(); });
  }

 private:
  std::unique_ptr<fabric::Endpoint> endpoint_;
  Wire& wire_;
  bool is_sender_;
  int peer_ = -1;
  int advances_left_ = -1;
  std::unique_ptr<Channel> channel_;
};

/// Columns of the paper's matrix by every scheme: bytes, gaps, posts, copies, registrations.
inline void columns_by_every_scheme(Side& side) {
  constexpr Offset rows = 128;
  for (const Offset length : {4, 64, 512, 8192}) {
    Arena from(vector_sample(rows, length, 16384), 1, 0, 1), to(vector_sample(rows, length, 8192 + 64), 1, 0, 2);
    for (const Scheme scheme : every_scheme) {
      SCOPED_TRACE(testing::Message() << name(scheme) << ' ' << length);
      ASSERT_EQ(side.move(from, to, only(scheme)), Result::ok);  // registers
      side.meet();
      const Counts before = side.channel().counts();
      const auto registrations = side.channel().registrations().registrations();
      ASSERT_EQ(side.move(from, to, only(scheme)), Result::ok);
      const Counts after = side.channel().counts();
      const bool copies = scheme == Scheme::pipelined || (scheme == Scheme::gather_write && !side.is_sender()) ||
                          (scheme == Scheme::scatter_read && side.is_sender());
      EXPECT_EQ(after.copied_bytes - before.copied_bytes, copies ? rows * length : 0);
      if (side.limits().follows_mappings) {
        EXPECT_EQ(side.channel().registrations().registrations(), registrations);
      }
      const bool posts = side.is_sender() != (scheme == Scheme::scatter_read);
      const auto count = after.posts - before.posts;
      if (!posts) {
        EXPECT_EQ(count, 0u);
      } else if (scheme == Scheme::multi_write) {
        EXPECT_EQ(count, static_cast<std::uint64_t>(rows));
      } else {
        // By Wu et al.'s arithmetic, a segment at a time.
        const auto total = static_cast<std::uint64_t>(rows * length),
                   segment = segment_bytes_for(total, 128 << 10, side.channel().options().profile);
        const std::uint64_t entries =
            scheme == Scheme::gather_write ? side.limits().gather_entries : side.limits().scatter_entries;
        std::uint64_t expected = 0;
        for (std::uint64_t begin = 0; begin < total; begin += segment) {
          const std::uint64_t bytes = std::min(segment, total - begin);
          const std::uint64_t blocks =
              (bytes + static_cast<std::uint64_t>(length) - 1) / static_cast<std::uint64_t>(length);
          expected += scheme == Scheme::pipelined ? 1 : (blocks + entries - 1) / entries;
        }
        EXPECT_EQ(count, expected);
      }
      side.meet();
    }
  }
}

/// Random layouts by every scheme; both sides have the same seed.
inline void random_layouts(Side& side, std::uint64_t seed, int cases) {
  RandomLayouts random(seed);
  for (int i = 0; i < cases; ++i) {
    const Sample a = random.next(false), b = random.next(false);
    const auto most = std::lcm(a.layout->size, b.layout->size);
    const bool is_lcm = most <= 1 << 16;
    const Sample& source = is_lcm ? a : b;
    const Offset from_count = is_lcm ? most / a.layout->size : 3, to_count = is_lcm ? most / b.layout->size : 3;
    const auto extent = [&](const Sample& sample) { return sample.high() - sample.low() + random.number(0, 40); };
    const Offset from_extent = extent(source), to_extent = extent(b);
    const std::uint64_t from_bits = random.bits(), to_bits = random.bits();
    Arena from(source, from_count, from_extent, from_bits), to(b, to_count, to_extent, to_bits);
    for (const Scheme scheme : every_scheme) {
      SCOPED_TRACE(testing::Message() << "case " << i << ' ' << name(scheme));
      ASSERT_EQ(side.move(from, to, only(scheme)), Result::ok);
    }
  }
}

}  // namespace gapless::tests
