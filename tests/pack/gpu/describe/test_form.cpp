// The forms that kernels get: the same function, and no more memory than a kernel's list may take.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "layout/datatype/datatype.hpp"
#include "pack/gpu/describe/form.hpp"
#include "seed.hpp"

namespace gapless::tests {
namespace {

using layout::Offset;

/// Listed for a kernel, the children of these blocks would take gigabytes.
TEST(Form, RunsTooLongForAListBecomePartsOfASum) {
  const Offset lengths[] = {Offset{1} << 30, 3, 70'000, Offset{1} << 31};
  const Offset displacements[] = {-9, Offset{1} << 33, Offset{1} << 34, Offset{1} << 35};
  const layout::Datatype child = layout::resized(layout::named(4, 4), 0, 12);
  const layout::LayoutPointer long_runs = layout::indexed(lengths, displacements, child).layout;
  ASSERT_TRUE(long_runs->offsets.has_runs());
  const layout::LayoutPointer form = pack::gpu::kernel_form(*long_runs);
  ASSERT_NE(form, nullptr);
  EXPECT_LT(layout::memory_bytes(*form), 5000u);
  ASSERT_EQ(form->size, long_runs->size);
  for (Offset i = 0, first = 0; i < 4; first += lengths[i++]) {
    for (const Offset element : {first, first + lengths[i] / 2, first + lengths[i] - 1}) {
      EXPECT_EQ(layout::offset_of(*form, 4 * element + 1), layout::offset_of(*long_runs, 4 * element + 1));
      EXPECT_EQ(layout::offset_of(*form, 4 * element + 1), (displacements[i] + element - first) * 12 + 1);
    }
  }
}

/// A part of a sum takes as much memory as a hundred offsets.
TEST(Form, ManyRunsOfFewAreNoSum) {
  constexpr std::size_t count = 150'000;
  std::vector<Offset> lengths, displacements;
  Offset end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    lengths.push_back(29 + static_cast<Offset>(i * i % 7));
    displacements.push_back(end);
    end += lengths.back() + 1 + static_cast<Offset>(i * i % 11);
  }
  const layout::Datatype child = layout::resized(layout::named(4, 4), 0, 12);
  const layout::LayoutPointer runs = layout::indexed(lengths, displacements, child).layout;
  ASSERT_TRUE(runs->offsets.has_runs());
  ASSERT_GT(runs->offsets.size(), static_cast<std::size_t>(pack::gpu::listed_runs_limit));
  EXPECT_EQ(pack::gpu::kernel_form(*runs), nullptr);
}

TEST(Form, ShorterRunsAreListed) {
  const Offset lengths[] = {2000, 3000, 4000}, displacements[] = {0, 5000, 20'000};
  const layout::Datatype child = layout::resized(layout::named(4, 4), 0, 12);
  const layout::LayoutPointer runs = layout::indexed(lengths, displacements, child).layout;
  EXPECT_EQ(pack::gpu::kernel_form(*runs), nullptr);
}

/// A list becomes a table where the greatest common divisor of all lengths, 64 bits long or shorter, makes a short one.
TEST(Form, ListsOfRunsWithACommonBlockBecomeTables) {
  std::mt19937_64 random(random_seed());
  const auto number = [&](Offset low, Offset high) { return std::uniform_int_distribution<Offset>(low, high)(random); };
  int tables = 0, lists = 0;
  for (int sample = 0; sample < 300; ++sample) {
    const Offset block = number(0, 3) == 0 ? number(1, Offset{1} << 40) : number(1, 24);
    const Offset count = number(3, 9'000), longest = number(2, 20);
    std::vector<Offset> lengths, displacements;
    Offset end = number(0, 1000), common = 0, size = 0;
    for (Offset i = 0; i < count; ++i) {
      lengths.push_back(block * number(1, longest));
      displacements.push_back(end);
      common = std::gcd(common, lengths.back());
      size += lengths.back();
      end += lengths.back() + number(1, 9);
    }
    const layout::LayoutPointer list = layout::hindexed(lengths, displacements, layout::named(1, 1)).layout;
    if (list->core != layout::Core::segments) continue;
    const layout::LayoutPointer form = pack::gpu::kernel_form(*list);
    const bool is_table = size / common <= pack::gpu::table_entries_limit;
    ++(is_table ? tables : lists);
    ASSERT_EQ(form != nullptr, is_table) << "sample " << sample;
    EXPECT_EQ(pack::gpu::kernel_form(*list, true), nullptr);
    if (!is_table) continue;
    ASSERT_EQ(form->child->size, common) << "sample " << sample;
    for (int i = 0; i < 100; ++i) {
      const Offset k = number(0, size - 1);
      ASSERT_EQ(layout::offset_of(*form, k), layout::offset_of(*list, k)) << "sample " << sample;
    }
  }
  EXPECT_GT(tables, 3);
  EXPECT_GT(lists, 3);
}

}  // namespace
}  // namespace gapless::tests
