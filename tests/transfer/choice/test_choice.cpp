// Which scheme for which memory and layout, and that a scheme can be forced only where it makes sense.
#include <gtest/gtest.h>

#include "layout/datatype/datatype.hpp"
#include "model/model.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/choice/choose.hpp"

namespace gapless::tests {
namespace {

using device::Location;
using device::MemoryKind;
using transfer::Buffer;
using transfer::Scheme;
using transfer::Side;

transfer::Described described(const layout::Datatype& type) {
  const bool contiguous = type.layout->is_contiguous() && type.extent() == type.size();
  return {type.layout, layout::facts_of(*type.layout), type.extent(), contiguous};
}

class Choice : public ::testing::Test {
 protected:
  void TearDown() override {
    transfer::force_scheme(std::nullopt);
    model::change_profile() = {};
  }
  Scheme choose(const transfer::Described& type, MemoryKind kind, Side side = Side::sender, layout::Offset count = 1) {
    return transfer::choose({&type, count, nullptr, Location{kind, kind == MemoryKind::host ? -1 : 0}}, side);
  }
  const layout::Datatype byte_ = layout::named(1, 1);
  const transfer::Described contiguous_ = described(layout::contiguous(1 << 20, byte_));
  const transfer::Described small_blocks_ = described(layout::vector(1000, 8, 64, byte_));
  const transfer::Described large_blocks_ = described(layout::vector(8, 1 << 20, 1 << 21, byte_));
};

TEST_F(Choice, ContiguousHostMemoryIsTheLibrarys) {
  for (MemoryKind kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::managed}) {
    EXPECT_EQ(choose(contiguous_, kind), Scheme::native);
    EXPECT_EQ(choose(contiguous_, kind, Side::receiver, 7), Scheme::native);
  }
}

TEST_F(Choice, OneBlockIsContiguousHoweverLargeTheExtent) {
  const auto padded = described(layout::resized(layout::contiguous(8, byte_), 0, 64));
  EXPECT_EQ(choose(padded, MemoryKind::host, Side::sender, 1), Scheme::native);
  EXPECT_EQ(choose(padded, MemoryKind::host, Side::sender, 2), Scheme::packed);
}

TEST_F(Choice, SmallBlocksArePackedAndLargeOnesAreNot) {
  EXPECT_EQ(choose(small_blocks_, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::host), Scheme::native);
}

// Each saving counts what it is named after, times the count: the third of something is the first that pays.
TEST_F(Choice, HostMemoryFollowsTheSumOfSavings) {
  const auto ten_rows_of_two = described(layout::hvector(10, 1, 64, layout::vector(2, 3, 8, byte_)));
  const auto expect_from_the_third_on = [&](const char* what) {
    EXPECT_EQ(choose(ten_rows_of_two, MemoryKind::host, Side::sender, 2), Scheme::native) << what;
    EXPECT_EQ(choose(ten_rows_of_two, MemoryKind::host, Side::receiver, 3), Scheme::packed) << what;
  };
  constexpr model::Saving never = {.start_ns = -1, .row_ns = 0, .block_ns = 0, .byte_ns = 0};
  const auto host = []() -> model::HostProfile& { return model::change_profile().host; };
  host() = {.eager_bytes = 1e9,
            .eager = {-25, 1, 0, 0},
            .rendezvous = never,
            .received = never,
            .to_contiguous = never,
            .eager_slots = never,
            .rendezvous_slots = never,
            .ring = never,
            .pack = never,
            .first_uses = {}};
  expect_from_the_third_on("10 rows each");
  host().eager = {-50, 0, 1, 0};
  expect_from_the_third_on("20 blocks each");
  host().eager = {-150, 0, 0, 1};
  expect_from_the_third_on("60 bytes each");
  host() = {.eager_bytes = 120,
            .eager = never,
            .rendezvous = {1, 0, 0, 0},
            .received = {1, 0, 0, 0},
            .to_contiguous = never,
            .eager_slots = never,
            .rendezvous_slots = never,
            .ring = never,
            .pack = never,
            .first_uses = {}};
  expect_from_the_third_on("more than the eager limit");
}

TEST_F(Choice, RequestsAreWorthMoreThanTheyAdd) {
  const auto host = []() -> model::HostProfile& { return model::change_profile().host; };
  host().eager_bytes = 1e9;
  host().eager = {-1000, 0, 1.5, 0};
  const auto is_worth_it = [&] {
    return transfer::is_worth_a_request({&small_blocks_, 1, nullptr, Location{MemoryKind::host, -1}});
  };
  host().request_ns = 499;
  EXPECT_TRUE(is_worth_it());
  host().request_ns = 500;
  EXPECT_FALSE(is_worth_it());
  transfer::force_scheme(Scheme::packed);
  EXPECT_TRUE(is_worth_it());
}

/// A part saves what a message does, to a contiguous buffer or another, but for what a part adds.
TEST_F(Choice, PartsOfCollectivesSaveLessThanMessages) {
  const transfer::Buffer part{&small_blocks_, 1, nullptr, {}};
  const auto host = []() -> model::HostProfile& { return model::change_profile().host; };
  host().eager_bytes = 0;
  host().rendezvous = {-500, 0, 1, 0};
  host().to_contiguous = {-400, 0, 1, 0};
  host().part_ns = 100;
  EXPECT_EQ(500, transfer::part_saving_ns(part));
  host().to_contiguous = {-600, 0, 1, 0};
  EXPECT_EQ(400, transfer::part_saving_ns(part));
  transfer::force_scheme(Scheme::packed);
  EXPECT_EQ(model::never_ns, transfer::part_saving_ns(part));
  transfer::force_scheme(Scheme::native);
  EXPECT_EQ(0, transfer::part_saving_ns(part));
}

TEST_F(Choice, PackingHasASavingOfItsOwn) {
  const auto choose_packing = [](const transfer::Described& type, layout::Offset count) {
    return transfer::choose_packing({&type, count, nullptr, Location{}});
  };
  model::change_profile().host.pack = {-1500, 0, 1, 0};
  EXPECT_EQ(choose_packing(small_blocks_, 1), Scheme::native);
  EXPECT_EQ(choose_packing(small_blocks_, 2), Scheme::packed);
  EXPECT_EQ(choose_packing(contiguous_, 1000), Scheme::native);
  transfer::force_scheme(Scheme::packed);
  EXPECT_EQ(choose_packing(small_blocks_, 1), Scheme::packed);
  EXPECT_EQ(choose_packing(contiguous_, 1), Scheme::native);
  transfer::force_scheme(Scheme::native);
  EXPECT_EQ(choose_packing(small_blocks_, 2), Scheme::native);
}

// Where measurements of each library leave no doubt.
TEST_F(Choice, OfTheLibrariesMeasured) {
  const layout::Datatype real = layout::named(8, 8);
  const auto column = described(layout::vector(64, 1, 66, real));
  const auto plane = described(layout::vector(64, 64, 66, real));
  const auto column_of_a_field = described(layout::vector(8192, 1, 64, real));
  const auto short_rows = described(layout::hvector(8192, 1, 640, layout::vector(2, 1, 3, real)));
  const auto transpose = described(layout::contiguous(256, layout::resized(layout::vector(256, 1, 256, real), 0, 8)));
  const auto pair_of_blocks = described(layout::vector(2, 32, 64, real));

  model::change_profile().host = model::open_mpi_on_host;
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(pair_of_blocks, MemoryKind::host), Scheme::native);
  EXPECT_EQ(choose(plane, MemoryKind::host), Scheme::native);
  EXPECT_EQ(choose(column_of_a_field, MemoryKind::host), Scheme::native);
  EXPECT_EQ(choose(short_rows, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(transpose, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::host), Scheme::native);

  model::change_profile().host = model::mpich_on_host;
  for (const auto* type : {&column, &plane, &column_of_a_field, &short_rows, &transpose, &pair_of_blocks}) {
    EXPECT_EQ(choose(*type, MemoryKind::host), Scheme::packed);
  }
  EXPECT_EQ(choose(large_blocks_, MemoryKind::host), Scheme::native);
}

/// Equal messages ask the model once; another count, a scheme that is forced and a profile that changes are noticed.
TEST_F(Choice, IsRememberedUntilWhatItRestsOnChanges) {
  const auto column = described(layout::vector(64, 1, 66, layout::named(8, 8)));
  model::change_profile().host = model::open_mpi_on_host;
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::packed);
  // Behind the model's back: a choice that is remembered does not see it.
  constexpr model::Saving never = {.start_ns = -1, .row_ns = 0, .block_ns = 0, .byte_ns = 0};
  model::HostProfile& host = model::change_profile().host;
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::packed);
  host.eager = host.rendezvous = never;
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(column, MemoryKind::host, Side::sender, 2), Scheme::native);
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::native);
  model::change_profile().host = model::open_mpi_on_host;
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::packed);
  transfer::force_scheme(Scheme::native);
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::native);
  transfer::force_scheme(std::nullopt);
  EXPECT_EQ(choose(column, MemoryKind::host), Scheme::packed);
  const transfer::Described copy = column;
  EXPECT_EQ(choose(copy, MemoryKind::host), Scheme::packed);
}

TEST_F(Choice, GpuMemoryNeverGoesNative) {
  for (const auto* type : {&contiguous_, &small_blocks_, &large_blocks_}) {
    for (Side side : {Side::sender, Side::receiver}) {
      EXPECT_TRUE(choose(*type, MemoryKind::device, side) == Scheme::oneshot ||
                  choose(*type, MemoryKind::device, side) == Scheme::staged);
    }
  }
}

TEST_F(Choice, GpuMemoryOfMessagesBeyondTheKeptBuffersGoesThroughSegments) {
  for (const auto* type : {&contiguous_, &large_blocks_}) {
    const auto fits = static_cast<layout::Offset>(transfer::longest_kept_page_locked()) / type->layout->size;
    for (const Side side : {Side::sender, Side::receiver}) {
      EXPECT_EQ(choose(*type, MemoryKind::device, side, fits), Scheme::oneshot);
      EXPECT_EQ(choose(*type, MemoryKind::device, side, fits + 1), Scheme::pipelined);
    }
  }
}

TEST_F(Choice, GpuMemoryThatTheLibraryReadsStaysThereUnlessTheMessageIsShort) {
  transfer::set_library_reads_gpu_memory(true);
  for (const Side side : {Side::sender, Side::receiver}) {
    EXPECT_EQ(choose(small_blocks_, MemoryKind::device, side), Scheme::oneshot);
    EXPECT_EQ(choose(small_blocks_, MemoryKind::device, side, 10), Scheme::device);
    EXPECT_EQ(choose(large_blocks_, MemoryKind::device, side, 1000), Scheme::device);
  }
  transfer::force_scheme(Scheme::staged);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::device, Side::sender), Scheme::staged);
  transfer::force_scheme(Scheme::device);
  EXPECT_EQ(choose(small_blocks_, MemoryKind::device, Side::sender), Scheme::device);
  transfer::set_library_reads_gpu_memory(false);
  EXPECT_NE(choose(small_blocks_, MemoryKind::device, Side::sender), Scheme::device);
}

// What was chosen last is kept with the datatype.
TEST_F(Choice, GpuMemoryFollowsWhatChanges) {
  constexpr layout::Offset count = 1000;
  const auto chosen = [&](Side side) { return choose(large_blocks_, MemoryKind::device, side, count); };
  const auto expect = [&](Scheme scheme) {
    for (int times = 0; times < 2; ++times) {
      EXPECT_EQ(chosen(Side::sender), scheme);
      EXPECT_EQ(chosen(Side::receiver), scheme);
    }
  };
  EXPECT_EQ(choose(large_blocks_, MemoryKind::device, Side::sender, 1), Scheme::oneshot);
  expect(Scheme::pipelined);
  transfer::set_library_reads_gpu_memory(true);
  expect(Scheme::device);
  transfer::force_scheme(Scheme::oneshot);
  expect(Scheme::oneshot);
  transfer::force_scheme(std::nullopt);
  expect(Scheme::device);
  model::change_profile().gpu.gpu_message_ns = 1e12;
  EXPECT_NE(chosen(Side::sender), Scheme::device);
  transfer::set_library_reads_gpu_memory(false);
}

TEST_F(Choice, GpuMemoryGoesDirectWhereThatIsSooner) {
  const auto goes_direct = [&](layout::Offset bytes, model::Pair pair) {
    const auto type = described(layout::vector(bytes / 8, 8, 16, byte_));
    return transfer::goes_direct({&type, 1, nullptr, Location{MemoryKind::device, 0}}, pair);
  };
  EXPECT_FALSE(goes_direct(504, model::Pair::peer_gpu));
  EXPECT_TRUE(goes_direct(512, model::Pair::peer_gpu));
  for (const layout::Offset bytes : {1 << 10, 64 << 10, 1 << 20, 128 << 20}) {
    EXPECT_TRUE(goes_direct(bytes, model::Pair::peer_gpu));
    EXPECT_EQ(bytes > 1 << 10, goes_direct(bytes, model::Pair::same_node)) << bytes;
    EXPECT_FALSE(goes_direct(bytes, model::Pair::other_node));
  }
  // Two processes take turns on one GPU.
  EXPECT_FALSE(goes_direct(64 << 10, model::Pair::same_gpu));
  EXPECT_TRUE(goes_direct(4 << 20, model::Pair::same_gpu));
  model::change_profile().gpu.change_process_ns = 1e9;
  EXPECT_FALSE(goes_direct(4 << 20, model::Pair::same_gpu));
  transfer::force_scheme(Scheme::direct);
  EXPECT_TRUE(goes_direct(1 << 10, model::Pair::same_gpu));
  EXPECT_FALSE(goes_direct(504, model::Pair::same_gpu));
  transfer::force_scheme(Scheme::oneshot);
  EXPECT_FALSE(goes_direct(128 << 20, model::Pair::peer_gpu));
}

model::Table at(double bytes, double ns) { return model::Table({{{bytes}, {1}, {1}}}, {ns}); }

TEST_F(Choice, TablesOfSlotsTakeThePlaceOfTheSums) {
  model::Measured measured;
  model::CostsByScheme& costs =
      measured.costs[static_cast<std::size_t>(model::Memory::host)][static_cast<std::size_t>(model::Pair::same_node)];
  model::change_profile().measured = &measured;
  const transfer::Buffer buffer{&small_blocks_, 1, nullptr, Location{}};
  const auto chosen = [&] { return transfer::choose_in_node(buffer, model::Pair::same_node); };
  costs[model::native_scheme].message = at(8000, 9000);
  costs[model::packed_scheme].message = at(8000, 5000);
  // Nothing measured of slots: the sums compare them with packing.
  EXPECT_EQ(transfer::goes_by_header(buffer), model::slots_saving_ns(transfer::amount_of(buffer), false) > 0);
  costs[model::slots_scheme].message = at(8000, 4999);
  EXPECT_TRUE(transfer::goes_by_header(buffer));
  EXPECT_EQ(chosen(), Scheme::slots);
  EXPECT_NEAR(transfer::predict_in_node_ns(Scheme::slots, buffer, model::Pair::same_node), -2000.5, 1e-6);
  EXPECT_NEAR(transfer::predict_in_node_ns(Scheme::packed, buffer, model::Pair::same_node), -2000, 1e-6);
  costs[model::slots_scheme].message = at(8000, 5001);
  model::change_profile();
  EXPECT_FALSE(transfer::goes_by_header(buffer));
  EXPECT_EQ(chosen(), Scheme::packed);
  // A request costs both the same, and the library's own way nothing.
  costs[model::slots_scheme].message = at(8000, 4000);
  model::change_profile().host.request_ns = 2499;
  EXPECT_TRUE(transfer::goes_by_header(buffer, true));
  model::change_profile().host.request_ns = 2501;
  EXPECT_FALSE(transfer::goes_by_header(buffer, true));
  EXPECT_TRUE(transfer::goes_by_header(buffer));
}

TEST_F(Choice, TablesOfDirectAreThoseOfTheirPair) {
  model::Measured measured;
  const auto costs_of = [&](model::Pair pair, Scheme scheme) -> model::SchemeCosts& {
    return measured.costs[static_cast<std::size_t>(model::Memory::gpu)][static_cast<std::size_t>(pair)]
                         [static_cast<std::size_t>(scheme)];
  };
  model::change_profile().measured = &measured;
  const transfer::Buffer buffer{&small_blocks_, 1, nullptr, Location{MemoryKind::device, 0}};
  for (const model::Pair pair : {model::Pair::same_gpu, model::Pair::peer_gpu}) {
    for (const Scheme scheme : {Scheme::oneshot, Scheme::staged, Scheme::pipelined})
      costs_of(pair, scheme).message = at(8000, 1000);
  }
  costs_of(model::Pair::same_gpu, Scheme::direct).message = at(8000, 999);
  costs_of(model::Pair::peer_gpu, Scheme::direct).message = at(8000, 1001);
  EXPECT_TRUE(transfer::goes_direct(buffer, model::Pair::same_gpu));
  EXPECT_FALSE(transfer::goes_direct(buffer, model::Pair::peer_gpu));
  EXPECT_EQ(transfer::choose_in_node(buffer, model::Pair::same_gpu), Scheme::direct);
  EXPECT_NE(transfer::choose_in_node(buffer, model::Pair::peer_gpu), Scheme::direct);
  EXPECT_NEAR(transfer::predict_in_node_ns(Scheme::direct, buffer, model::Pair::same_gpu), 999, 1e-6);
  EXPECT_NEAR(transfer::predict_in_node_ns(Scheme::oneshot, buffer, model::Pair::peer_gpu), 1000, 1e-6);
}

TEST_F(Choice, FollowsTheModelsCosts) {
  model::change_profile().gpu.mapped_read_bytes_per_ns = 1;
  EXPECT_EQ(choose(large_blocks_, MemoryKind::device, Side::receiver), Scheme::staged);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::device, Side::sender), Scheme::oneshot);
  EXPECT_EQ(choose(contiguous_, MemoryKind::device, Side::receiver), Scheme::oneshot);
}

TEST_F(Choice, ForcedWhereTheMemoryAllowsIt) {
  transfer::force_scheme(Scheme::native);
  EXPECT_EQ(choose(small_blocks_, MemoryKind::host), Scheme::native);
  EXPECT_NE(choose(small_blocks_, MemoryKind::device), Scheme::native);
  transfer::force_scheme(Scheme::packed);
  EXPECT_EQ(choose(large_blocks_, MemoryKind::host), Scheme::packed);
  EXPECT_EQ(choose(contiguous_, MemoryKind::host), Scheme::native);
  EXPECT_NE(choose(small_blocks_, MemoryKind::device), Scheme::packed);
  for (Scheme scheme : {Scheme::oneshot, Scheme::staged, Scheme::pipelined}) {
    transfer::force_scheme(scheme);
    EXPECT_EQ(choose(small_blocks_, MemoryKind::device), scheme);
    EXPECT_EQ(choose(small_blocks_, MemoryKind::host), Scheme::packed);
    EXPECT_EQ(choose(contiguous_, MemoryKind::host), Scheme::native);
  }
}

TEST_F(Choice, NamesAreThoseOfTheEnvironmentVariable) {
  EXPECT_STREQ(transfer::name(Scheme::native), "native");
  EXPECT_STREQ(transfer::name(Scheme::packed), "packed");
  EXPECT_STREQ(transfer::name(Scheme::oneshot), "oneshot");
  EXPECT_STREQ(transfer::name(Scheme::staged), "staged");
  EXPECT_STREQ(transfer::name(Scheme::pipelined), "pipelined");
  EXPECT_STREQ(transfer::name(Scheme::device), "device");
}

}  // namespace
}  // namespace gapless::tests
