// Memory that is registered already, and that the CPU does not reach, as a GPU's: the fabric alone moves its bytes.
#include "pair.hpp"

namespace gapless::tests {
namespace {

constexpr Offset bytes = 100000;

/// Packed bytes in memory of a GPU. The arena's are ordinary memory, and what the CPU copies is counted.
class OnGpu {
 public:
  OnGpu(fabric::LoopbackEndpoint& endpoint, std::uint64_t seed)
      : arena(vector_sample(1, bytes, bytes), 1, 0, seed), memory(arena.memory()), endpoint_(endpoint) {
    endpoint.faults.gpu_registrations_left = 1;
    EXPECT_EQ(endpoint.register_gpu_memory(arena.bytes().data(), arena.bytes().size(), 0, region_), fabric::Status::ok);
    memory.region = &region_;
  }
  ~OnGpu() { endpoint_.deregister(region_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  Arena arena;
  Memory memory;

 private:
  fabric::LoopbackEndpoint& endpoint_;
  fabric::Region region_;
};

Arena rows(std::uint64_t seed) { return {vector_sample(50, 2000, 3000), 1, 0, seed}; }

TEST(GpuMemory, IsSentWithoutACopy) {
  for (const Scheme scheme : {Scheme::pipelined, Scheme::gather_write, Scheme::multi_write}) {
    Pair pair;
    const OnGpu from(pair.left, 1);
    Arena to = rows(2);
    const auto expected = to.expected_from(from.arena);
    const auto outcome = pair.send(from.memory, to.memory(), only(scheme));
    EXPECT_EQ(outcome.sent, Result::ok);
    EXPECT_EQ(outcome.received, Result::ok);
    EXPECT_EQ(outcome.scheme, scheme);
    EXPECT_TRUE(to.bytes() == expected) << name(scheme);
    EXPECT_EQ(pair.sender->counts().copied_bytes, 0u) << name(scheme);
    EXPECT_EQ(pair.sender->registrations().registrations(), 0u);
    EXPECT_EQ(pair.left.misuses() + pair.right.misuses(), 0u);
  }
}

TEST(GpuMemory, IsReceivedWithoutACopyWhateverElseIsAllowed) {
  Pair pair;
  Arena from = rows(1);
  OnGpu to(pair.right, 2);
  const auto expected = to.arena.expected_from(from);
  const auto outcome = pair.send(from.memory(), to.memory);
  EXPECT_EQ(outcome.received, Result::ok);
  EXPECT_EQ(outcome.scheme, Scheme::multi_write);
  EXPECT_TRUE(to.arena.bytes() == expected);
  EXPECT_EQ(pair.receiver->counts().copied_bytes, 0u);
}

TEST(GpuMemory, GoesFromGpuToGpu) {
  Pair pair;
  const OnGpu from(pair.left, 1);
  OnGpu to(pair.right, 2);
  const auto expected = to.arena.expected_from(from.arena);
  EXPECT_EQ(pair.send(from.memory, to.memory).received, Result::ok);
  EXPECT_TRUE(to.arena.bytes() == expected);
  EXPECT_EQ(pair.sender->counts().copied_bytes + pair.receiver->counts().copied_bytes, 0u);
}

TEST(GpuMemory, IsNotReadFromStaging) {
  Pair pair;
  const OnGpu from(pair.left, 1);
  Arena to = rows(2);
  Message* const out = pair.sender->send(pair.left_peer, from.memory);
  EXPECT_EQ(pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(Scheme::scatter_read)), nullptr);
  // A receiver that asks for that all the same.
  Message* const in = pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(Scheme::pipelined));
  ASSERT_NE(in, nullptr);
  Reply reply = in->reply();
  reply.scheme = Scheme::scatter_read;
  EXPECT_EQ(out->start(reply), Result::failed);
  pair.sender->end(out);
  pair.receiver->end(in);
}

TEST(GpuMemory, ThatIsLostIsAnErrorOfBothSides) {
  for (const Scheme scheme : {Scheme::pipelined, Scheme::gather_write, Scheme::multi_write}) {
    Pair pair;
    const OnGpu from(pair.left, 1);
    Arena to = rows(2);
    const auto untouched = to.bytes();
    Message* const out = pair.sender->send(pair.left_peer, from.memory);
    Message* const in = pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(scheme));
    ASSERT_NE(in, nullptr);
    out->lose(in->reply());
    EXPECT_EQ(out->result(), Result::failed);
    for (int i = 0; i < 1000 && in->result() == Result::under_way; ++i) {
      pair.sender->progress();
      pair.receiver->progress();
      static_cast<void>(in->advance());
    }
    EXPECT_EQ(in->result(), Result::failed) << name(scheme);
    EXPECT_TRUE(to.bytes() == untouched);
    pair.sender->end(out);
    pair.receiver->end(in);
  }
}

TEST(GpuMemory, ThatIsLostIsToldOfOnceTheQueueHasRoom) {
  fabric::LoopbackShape shape;
  shape.limits.outstanding = 1;
  Pair pair(shape);
  const OnGpu from(pair.left, 1);
  Arena other = rows(3), to = rows(2), to_other = rows(4);
  // Another message fills the queue.
  pair.left.faults.stalls = true;
  Message* const before = pair.sender->send(pair.left_peer, other.memory());
  Message* const in_before =
      pair.receiver->receive(pair.right_peer, to_other.memory(), before->offer(), only(Scheme::pipelined));
  ASSERT_EQ(before->start(in_before->reply()), Result::under_way);
  ASSERT_EQ(pair.left.queued(), 1u);
  Message* const out = pair.sender->send(pair.left_peer, from.memory);
  Message* const in = pair.receiver->receive(pair.right_peer, to.memory(), out->offer(), only(Scheme::pipelined));
  ASSERT_NE(in, nullptr);
  out->lose(in->reply());
  EXPECT_EQ(out->advance(), Result::under_way);
  pair.left.faults.stalls = false;
  for (int i = 0; i < 1000 && in->result() == Result::under_way; ++i) {
    pair.sender->progress();
    pair.receiver->progress();
    static_cast<void>(out->advance());
    static_cast<void>(in->advance());
  }
  EXPECT_EQ(out->result(), Result::failed);
  EXPECT_EQ(in->result(), Result::failed);
  for (Message* each : {before, out}) pair.sender->end(each);
  for (Message* each : {in_before, in}) pair.receiver->end(each);
}

}  // namespace
}  // namespace gapless::tests
