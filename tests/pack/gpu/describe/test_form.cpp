// The forms that kernels get: the same function, and no more memory than a kernel's list may take.
#include <gtest/gtest.h>

#include "layout/datatype/datatype.hpp"
#include "pack/gpu/describe/form.hpp"

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

}  // namespace
}  // namespace gapless::tests
