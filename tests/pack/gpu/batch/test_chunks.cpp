// Large unpacks from host memory: what goes in chunks, where they end, and that each is brought, launched and let go of
// in order, up to the first failure.
#include <gtest/gtest.h>

#include <memory>

#include "host_descriptors.hpp"
#include "layout/algebra/canonical.hpp"
#include "pack/gpu/batch/chunks.hpp"
#include "pack/gpu/route/route.hpp"

namespace gapless::tests {
namespace {

using device::Status;
using layout::Offset;
using pack::Direction;
using pack::Job;
using namespace pack::gpu;

constexpr Offset mebibyte = Offset{1} << 20;

TEST(Chunks, EndWithASmallOne) {
  const auto ends = [](Offset begin, Offset end) {
    std::vector<Offset> all;
    while (begin < end) all.push_back(begin = end_of_chunk(begin, end));
    return all;
  };
  EXPECT_EQ(ends(0, mebibyte), (std::vector<Offset>{mebibyte}));
  EXPECT_EQ(ends(5, 5 + 3 * mebibyte), (std::vector<Offset>{5 + mebibyte, 5 + 3 * mebibyte}));
  EXPECT_EQ(ends(0, 16 * mebibyte), (std::vector<Offset>{8 * mebibyte, 14 * mebibyte, 16 * mebibyte}));
  EXPECT_EQ(ends(0, 18 * mebibyte), (std::vector<Offset>{8 * mebibyte, 16 * mebibyte, 18 * mebibyte}));
  for (Offset size = mebibyte; size < 70 * mebibyte; size += 777'777) {
    Offset begin = 0;
    for (const Offset end : ends(0, size)) {
      EXPECT_GT(end, begin);
      EXPECT_LE(end - begin, largest_chunk);
      begin = end;
    }
    EXPECT_EQ(begin, size);
  }
}

Job unpacking(const layout::LayoutPointer& layout, Offset begin, Offset end) {
  return {layout.get(), {1, 0}, begin, end, Direction::unpack, nullptr, reinterpret_cast<void*>(4096)};
}

TEST(Chunks, OnlyLargeUnpacksFromTheHost) {
  const auto pays = [](const layout::LayoutPointer& layout, Offset bytes, Traffic traffic = Traffic::from_host) {
    return pays_in_chunks(unpacking(layout, 7, 7 + bytes), traffic);
  };
  const auto whole = layout::repeat(layout::block(0, 128), 1 << 20, 512);
  EXPECT_TRUE(pays(whole, 11 * mebibyte));
  EXPECT_FALSE(pays(whole, 11 * mebibyte - 1));
  EXPECT_FALSE(pays(whole, 64 * mebibyte, Traffic::within_gpu));
  EXPECT_FALSE(pays(whole, 64 * mebibyte, Traffic::to_host));
  const auto odd = layout::repeat(layout::block(0, 100), 1 << 20, 200);
  const auto odd_list = layout::index(layout::block(0, 100), std::vector<Offset>{0, 300, 700});
  EXPECT_TRUE(pays(odd, 5 * mebibyte)) << "kernels write parts of sectors";
  EXPECT_TRUE(pays(odd_list, 5 * mebibyte));
  EXPECT_FALSE(pays(odd, 5 * mebibyte - 1));
  const auto sparse = layout::repeat(layout::block(0, 8), 1 << 23, 512);
  EXPECT_FALSE(pays(sparse, 47 * mebibyte)) << "the kernel is the slower part";
  EXPECT_TRUE(pays(sparse, 48 * mebibyte));
}

/// Writes down what is asked of it.
class Recorder final : public LaunchSink, public ChunkBuffers {
 public:
  std::string log;
  int brings_that_work = 100;
  int launches_that_work = 100;

  Status launch(const Launch&, const std::shared_ptr<Descriptor>&, bool is_last) override {
    if (launches_that_work-- == 0) return Status::failed;
    log += is_last ? "last " : "launch ";
    return Status::ok;
  }
  Status launch(const BatchPart&, bool) override { return Status::failed; }
  std::optional<Status> launch_from_table(const Batch&, bool) override { return Status::failed; }
  Status bring(const void* host, std::size_t bytes, void*& packed) noexcept override {
    if (brings_that_work-- == 0) return Status::failed;
    log += std::to_string((reinterpret_cast<std::uintptr_t>(host) - 4096) / mebibyte) + "+" +
           std::to_string(bytes / mebibyte) + " ";
    packed = nullptr;
    return Status::ok;
  }
  Status done() noexcept override {
    log += "done ";
    return Status::ok;
  }
};

class IssueInChunks : public ::testing::Test {
 protected:
  Status issue() { return issue_in_chunks(planner_, unpacking(rows_, 0, rows_->size), 0, recorder_, recorder_); }

  layout::LayoutPointer rows_ = layout::repeat(layout::block(0, 128), 1 << 17, 256);
  DescriptorCache descriptors_{std::make_shared<HostDescriptors>(), std::size_t{1} << 20};
  Planner planner_{descriptors_};
  Recorder recorder_;
};

TEST_F(IssueInChunks, OneAfterTheOther) {
  EXPECT_EQ(issue(), Status::ok);
  EXPECT_EQ(recorder_.log, "0+8 launch done 8+6 launch done 14+2 last done ");
}

TEST_F(IssueInChunks, EndsWithTheFirstFailure) {
  recorder_.brings_that_work = 1;
  EXPECT_EQ(issue(), Status::failed);
  EXPECT_EQ(recorder_.log, "0+8 launch done ");
  recorder_.log.clear();
  recorder_.brings_that_work = 100;
  recorder_.launches_that_work = 1;
  EXPECT_EQ(issue(), Status::failed);
  EXPECT_EQ(recorder_.log, "0+8 launch done 8+6 ");
}

}  // namespace
}  // namespace gapless::tests
