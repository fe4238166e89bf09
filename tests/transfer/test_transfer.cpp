// One side of a message, against a plain list of the bytes each datatype names: in host memory and in a simulated
// GPU's, where a stray access of the CPU faults and a forgotten wait shows as wrong bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../support/seed.hpp"
#include "random_datatype.hpp"
#include "simulated_gpu.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/operation.hpp"
#include "transfer/packing.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::tests {
namespace {

using device::Location;
using device::MemoryKind;
using layout::Offset;
using transfer::Buffer;
using transfer::Result;
using transfer::Scheme;
using Bytes = std::vector<unsigned char>;

const SimulatedGpu& gpu() {
  static const SimulatedGpu instance;
  return instance;
}

Bytes random_bytes(std::mt19937_64& random, std::size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

// Memory of either kind, whose contents the test reads and writes as a vector.
class Memory {
 public:
  Memory(const Bytes& contents, int gpu_number) : gpu_number_(gpu_number), host_(contents) {
    if (is_on_gpu()) {
      device_ = gpu().allocate(gpu_number, std::max<std::size_t>(contents.size(), 1));
      EXPECT_EQ(gpu().write(device_, contents.data(), contents.size()), 0);
    }
  }
  ~Memory() {
    if (is_on_gpu()) gpu().release(device_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool is_on_gpu() const { return gpu_number_ >= 0; }
  void* data() { return is_on_gpu() ? device_ : host_.data(); }
  Location location() const { return is_on_gpu() ? Location{MemoryKind::device, gpu_number_} : Location{}; }
  Bytes contents() {
    if (is_on_gpu()) {
      EXPECT_EQ(gpu().read(host_.data(), device_, host_.size()), 0);
    }
    return host_;
  }

 private:
  int gpu_number_;
  Bytes host_;
  void* device_ = nullptr;
};

// `count` of a random datatype somewhere in memory filled at random.
struct Case {
  testing::RandomDatatype drawn;
  Offset count;
  std::vector<Offset> offsets;  ///< index into `before` of each packed byte
  Bytes before;
  Offset origin = 0;  ///< index of the buffer argument
  transfer::Described described;

  Case(testing::DatatypeGenerator& generator, int depth)
      : drawn(generator.draw(depth)), count(generator.between(1, 3)) {
    for (Offset repetition = 0; repetition < count; ++repetition) {
      for (Offset byte : drawn.map.bytes) offsets.push_back(repetition * drawn.map.extent() + byte);
    }
    const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
    const Offset margin = 8 + generator.below(8);
    const Offset lowest = offsets.empty() ? 0 : std::min<Offset>(*low, 0), highest = offsets.empty() ? 0 : *high;
    origin = margin - lowest;
    for (Offset& offset : offsets) offset += origin;
    before = random_bytes(generator.random(), static_cast<std::size_t>(origin + std::max<Offset>(highest, 0) + margin));
    const bool contiguous = drawn.type.layout->is_contiguous() && drawn.type.extent() == drawn.type.size();
    described = {drawn.type.layout, layout::facts_of(*drawn.type.layout), drawn.type.extent(), contiguous};
  }

  Bytes packed() const {
    Bytes result;
    for (Offset offset : offsets) result.push_back(before[static_cast<std::size_t>(offset)]);
    return result;
  }
  Bytes after_unpacking(const Bytes& packed, std::size_t received) const {
    Bytes result = before;
    for (std::size_t k = 0; k < received; ++k) result[static_cast<std::size_t>(offsets[k])] = packed[k];
    return result;
  }
  Buffer buffer(Memory& memory) const {
    return {&described, count, static_cast<std::byte*>(memory.data()) + origin, memory.location()};
  }
};

bool is_on_gpu(const transfer::Operation& operation) { return operation.packed_location().kind == MemoryKind::device; }

/// What the MPI library would send.
Bytes packed_bytes(const transfer::Operation& operation) {
  Bytes bytes(operation.packed_size());
  if (is_on_gpu(operation)) {
    EXPECT_EQ(gpu().read(bytes.data(), operation.packed_data(), bytes.size()), 0);
  } else {
    std::memcpy(bytes.data(), operation.packed_data(), bytes.size());
  }
  return bytes;
}

/// As the MPI library would receive.
void put(const transfer::Operation& operation, const Bytes& packed, std::size_t received) {
  if (is_on_gpu(operation)) {
    EXPECT_EQ(gpu().write(operation.packed_data(), packed.data(), received), 0);
  } else {
    std::memcpy(operation.packed_data(), packed.data(), received);
  }
}

struct Way {
  const char* name;
  Scheme scheme;
  int gpu_number;
};

class EveryWay : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    transfer::force_scheme(GetParam().scheme);
    transfer::set_library_reads_gpu_memory(GetParam().scheme == Scheme::device);
  }
  void TearDown() override {
    transfer::force_scheme(std::nullopt);
    transfer::set_library_reads_gpu_memory(false);
  }
};

INSTANTIATE_TEST_SUITE_P(Schemes, EveryWay,
                         ::testing::Values(Way{"packed", Scheme::packed, -1}, Way{"oneshot", Scheme::oneshot, 0},
                                           Way{"staged", Scheme::staged, 1}, Way{"pipelined", Scheme::pipelined, 0},
                                           Way{"device", Scheme::device, 1}),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryWay, SendsTheTypeMapsBytes) {
  testing::DatatypeGenerator generator(random_seed());
  for (int i = 0; i < 400; ++i) {
    const Case c(generator, 1 + i % 4);
    SCOPED_TRACE(std::to_string(c.count) + " of " + c.drawn.text);
    Memory memory(c.before, GetParam().gpu_number);
    transfer::Operation out(c.buffer(memory), transfer::Side::sender);
    if (out.scheme() == Scheme::native) continue;
    ASSERT_EQ(out.scheme(), GetParam().scheme);
    ASSERT_EQ(out.wait(out.start()), Result::ok);
    ASSERT_EQ(packed_bytes(out), c.packed());
    ASSERT_EQ(memory.contents(), c.before);
  }
}

TEST_P(EveryWay, ReceivesWhatCameAndTouchesNothingElse) {
  testing::DatatypeGenerator generator(random_seed());
  for (int i = 0; i < 400; ++i) {
    const Case c(generator, 1 + i % 4);
    SCOPED_TRACE(std::to_string(c.count) + " of " + c.drawn.text);
    Memory memory(c.before, GetParam().gpu_number);
    transfer::Operation in(c.buffer(memory), transfer::Side::receiver);
    if (in.scheme() == Scheme::native) continue;
    ASSERT_EQ(in.start(), Result::ok);
    const Bytes packed = random_bytes(generator.random(), in.packed_size());
    const std::size_t received =
        i % 2 == 0 ? packed.size() : static_cast<std::size_t>(generator.below(in.packed_size() + 1));
    put(in, packed, received);
    ASSERT_EQ(in.wait(in.finish(received)), Result::ok);
    ASSERT_EQ(memory.contents(), c.after_unpacking(packed, received)) << received << " bytes of " << packed.size();
  }
}

// Several messages at a time, each asked now and then whether it is done.
TEST_P(EveryWay, AnyNumberMayBeUnderWay) {
  testing::DatatypeGenerator generator(random_seed());
  for (int round = 0; round < 20; ++round) {
    std::deque<Case> cases;
    std::deque<Memory> memories;
    std::deque<transfer::Operation> operations;
    std::vector<Result> results;
    for (int i = 0; i < 20; ++i) {
      const Case& c = cases.emplace_back(generator, 1 + i % 4);
      Memory& memory = memories.emplace_back(c.before, GetParam().gpu_number);
      transfer::Operation& out = operations.emplace_back(c.buffer(memory), transfer::Side::sender);
      results.push_back(out.scheme() == Scheme::native ? Result::ok : out.start());
    }
    for (bool is_under_way = true; is_under_way;) {
      is_under_way = false;
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i] == Result::under_way) results[i] = operations[i].advance();
        is_under_way |= results[i] == Result::under_way;
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (operations[i].scheme() == Scheme::native) continue;
      ASSERT_EQ(results[i], Result::ok);
      ASSERT_EQ(packed_bytes(operations[i]), cases[i].packed());
    }
  }
}

TEST_P(EveryWay, MessagesThatArriveTogetherAreUnpackedTogether) {
  testing::DatatypeGenerator generator(random_seed());
  std::deque<Case> cases;
  std::deque<Memory> memories;
  std::deque<transfer::Operation> operations;
  transfer::Batch batch;
  gpu().reset_counts();
  std::vector<std::pair<std::size_t, Bytes>> expected;
  for (int i = 0; i < 80; ++i) {
    const Case& c = cases.emplace_back(generator, 1 + i % 4);
    Memory& memory = memories.emplace_back(c.before, GetParam().gpu_number);
    transfer::Operation& in = operations.emplace_back(c.buffer(memory), transfer::Side::receiver);
    if (in.scheme() == Scheme::native) continue;
    ASSERT_EQ(in.start(), Result::ok);
    const Bytes packed = random_bytes(generator.random(), in.packed_size());
    const auto received = static_cast<std::size_t>(generator.below(in.packed_size() + 1));
    put(in, packed, received);
    in.finish_in(batch, received);
    expected.emplace_back(static_cast<std::size_t>(i), c.after_unpacking(packed, received));
  }
  ASSERT_EQ(batch.run(), Result::ok);
  for (const auto& [i, bytes] : expected) ASSERT_EQ(memories[i].contents(), bytes) << cases[i].drawn.text;
  if (GetParam().scheme == Scheme::oneshot || GetParam().scheme == Scheme::device) {
    EXPECT_LT(gpu().count("polls"), 4);
  }
}

TEST(LocalPacking, BetweenAllKindsOfMemory) {
  testing::DatatypeGenerator generator(random_seed());
  for (int i = 0; i < 600; ++i) {
    const Case c(generator, 1 + i % 4);
    if (c.offsets.empty()) continue;
    const int memory_gpu = static_cast<int>(generator.between(-1, 1)),
              packed_gpu = static_cast<int>(generator.between(-1, 1));
    SCOPED_TRACE(std::to_string(c.count) + " of " + c.drawn.text + ", memory on " + std::to_string(memory_gpu) +
                 ", packed on " + std::to_string(packed_gpu));
    const Bytes expected = c.packed();
    Memory memory(c.before, memory_gpu);
    Memory packed(random_bytes(generator.random(), expected.size()), packed_gpu);
    ASSERT_EQ(transfer::pack(c.buffer(memory), packed.data(), packed.location()), Result::ok);
    ASSERT_EQ(packed.contents(), expected);

    const Bytes news = random_bytes(generator.random(), expected.size());
    Memory source(news, packed_gpu);
    ASSERT_EQ(transfer::unpack(c.buffer(memory), source.data(), source.location()), Result::ok);
    ASSERT_EQ(memory.contents(), c.after_unpacking(news, news.size()));
  }
}

TEST(LocalPacking, InPiecesBeyondTheBounceBuffer) {
  const layout::Datatype type = layout::vector(9 << 20, 4, 8, layout::named(1, 1));
  const transfer::Described described{type.layout, layout::facts_of(*type.layout), type.extent(), false};
  Bytes contents(static_cast<std::size_t>(type.extent()));
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
  Memory memory(contents, 0);
  const auto packed_of = [](const Bytes& bytes) {
    Bytes result(bytes.size() / 2 + 2);
    for (std::size_t k = 0; k < result.size(); ++k) result[k] = bytes[k / 4 * 8 + k % 4];
    return result;
  };
  Bytes packed(static_cast<std::size_t>(type.size()));
  const Buffer buffer{&described, 1, memory.data(), memory.location()};
  ASSERT_EQ(transfer::pack(buffer, packed.data(), Location{}), Result::ok);
  ASSERT_TRUE(packed == packed_of(contents));
  for (auto& byte : packed) byte = static_cast<unsigned char>(~byte);
  ASSERT_EQ(transfer::unpack(buffer, packed.data(), Location{}), Result::ok);
  ASSERT_TRUE(packed == packed_of(memory.contents()));
}

class Failure : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    transfer::drain_pools();
    transfer::force_scheme(GetParam().scheme);
    transfer::set_library_reads_gpu_memory(GetParam().scheme == Scheme::device);
  }
  void TearDown() override {
    transfer::set_library_reads_gpu_memory(false);
    for (const char* operation : {"allocate", "copy", "run", "synchronize", "stream", "upload"})
      gpu().fail(operation, 0, 0);
    transfer::force_scheme(std::nullopt);
    transfer::drain_pools();
  }
  const layout::Datatype type_ = layout::vector(100, 4, 8, layout::named(1, 1));
  const transfer::Described described_{type_.layout, layout::facts_of(*type_.layout), type_.extent(), false};
  const Bytes before_ = Bytes(static_cast<std::size_t>(type_.extent()), 7);
  Memory memory_{before_, 0};
  const Buffer buffer_{&described_, 1, memory_.data(), memory_.location()};
};

INSTANTIATE_TEST_SUITE_P(Schemes, Failure,
                         ::testing::Values(Way{"oneshot", Scheme::oneshot, 0}, Way{"staged", Scheme::staged, 0},
                                           Way{"pipelined", Scheme::pipelined, 0}, Way{"device", Scheme::device, 0}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Failure, NoPinnedMemory) {
  gpu().fail("allocate", 0, -1);
  transfer::Operation out(buffer_, transfer::Side::sender);
  EXPECT_EQ(out.wait(out.start()), Result::out_of_memory);
  transfer::Operation in(buffer_, transfer::Side::receiver);
  EXPECT_EQ(in.start(), Result::out_of_memory);
  Bytes packed(400);
  EXPECT_EQ(transfer::pack(buffer_, packed.data(), Location{}), Result::out_of_memory);
}

TEST_P(Failure, NoGpuMemoryToStageInIsNoFailure) {
  gpu().fail("allocate", 1, -1);  // the pinned buffer comes first
  transfer::Operation out(buffer_, transfer::Side::sender);
  EXPECT_EQ(out.wait(out.start()), Result::ok);
  EXPECT_EQ(packed_bytes(out), Bytes(400, 7));
}

TEST_P(Failure, WithoutMemoryOfItsKindAMessageGoesThroughSegments) {
  gpu().fail("allocate", 0, 1);
  transfer::Operation out(buffer_, transfer::Side::sender);
  const Result result = out.wait(out.start());
  if (GetParam().scheme == Scheme::pipelined) {
    EXPECT_EQ(result, Result::out_of_memory);
    return;
  }
  EXPECT_EQ(result, Result::ok);
  EXPECT_EQ(out.scheme(), Scheme::pipelined);
  EXPECT_EQ(out.packed_location().kind, MemoryKind::host);
  EXPECT_EQ(packed_bytes(out), Bytes(400, 7));
}

TEST_P(Failure, PageLockedMemoryThatIsUsedUpIsNone) {
  const std::size_t limit = transfer::pool_limit();
  transfer::set_pool_limit(0);
  std::vector<transfer::PoolBuffer> used;
  for (;;) {
    transfer::PoolBuffer buffer(MemoryKind::pinned, 0, 1 << 20);
    if (!buffer) break;
    used.push_back(std::move(buffer));
  }
  for (;;) {
    transfer::PoolBuffer buffer(MemoryKind::pinned, 0, 4096);
    if (!buffer) break;
    used.push_back(std::move(buffer));
  }
  transfer::Operation out(buffer_, transfer::Side::sender), in(buffer_, transfer::Side::receiver);
  EXPECT_EQ(out.wait(out.start()), Result::ok);
  EXPECT_EQ(packed_bytes(out), Bytes(400, 7));
  ASSERT_EQ(in.start(), Result::ok);
  put(in, Bytes(400, 9), 400);
  EXPECT_EQ(in.wait(in.finish(400)), Result::ok);
  Bytes packed(400);
  EXPECT_EQ(transfer::pack(buffer_, packed.data(), Location{}), Result::ok);
  EXPECT_EQ(packed, Bytes(400, 9));
  transfer::set_pool_limit(limit);
}

TEST_P(Failure, OfAnyGpuOperationIsReported) {
  for (const char* operation : {"run", "synchronize"}) {
    gpu().fail(operation, 0, 1);
    transfer::Operation out(buffer_, transfer::Side::sender);
    EXPECT_EQ(out.wait(out.start()), Result::device_failed) << operation;
    gpu().fail(operation, 0, 0);
    transfer::Operation in(buffer_, transfer::Side::receiver);
    ASSERT_EQ(in.start(), Result::ok);
    gpu().fail(operation, 0, 1);
    EXPECT_EQ(in.wait(in.finish(400)), Result::device_failed) << operation;
    gpu().fail(operation, 0, 0);
  }
}

/// `operation`: what is to be counted once. The rows are so long, and so many, that copies pay where they can be had.
void expect_one(const char* operation, Offset stride) {
  const layout::Datatype type = layout::vector(256, 4096, stride, layout::named(1, 1));
  const transfer::Described described{type.layout, layout::facts_of(*type.layout), type.extent(), false};
  Memory memory(Bytes(static_cast<std::size_t>(type.extent()), 7), 0);
  const Buffer buffer{&described, 1, static_cast<char*>(memory.data()) - type.lower_bound, memory.location()};
  transfer::force_scheme(Scheme::oneshot);
  for (const int round : {0, 1}) {  // the first one fills the pool
    transfer::Operation out(buffer, transfer::Side::sender);
    gpu().reset_counts();
    ASSERT_EQ(out.wait(out.start()), Result::ok);
    EXPECT_EQ(gpu().count(operation), 1);
    EXPECT_EQ(gpu().count("launches") + gpu().count("copies"), 1);
    EXPECT_EQ(gpu().count("polls"), 1);
    EXPECT_EQ(gpu().count("synchronisations") + gpu().count("default_stream_waits"), 0);
    if (round == 1) {
      EXPECT_EQ(gpu().count("allocations") + gpu().count("uploads"), 0);
    }
  }
  transfer::force_scheme(std::nullopt);
}

TEST(GpuWork, AOneshotMessageIsOneCopyOrLaunchAndOnePoll) {
  expect_one("copies", 6144);
  expect_one("launches", -6144);
}

TEST(Statistics, CountMessagesAndBytes) {
  const auto before = transfer::statistics();
  transfer::record(Scheme::staged, 100);
  transfer::record(Scheme::staged, 20);
  std::uint64_t messages[transfer::scheme_count], bytes[transfer::scheme_count];
  gapless_transfer_statistics(messages, bytes);
  const auto staged = static_cast<std::size_t>(Scheme::staged);
  EXPECT_EQ(messages[staged], before[staged].messages + 2);
  EXPECT_EQ(bytes[staged], before[staged].bytes + 120);
  EXPECT_NE(transfer::summary().find("staged "), std::string::npos);
  EXPECT_EQ(transfer::summary().find(" 0 messages"), std::string::npos);
}

}  // namespace
}  // namespace gapless::tests
