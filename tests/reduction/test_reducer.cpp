// Reductions, on every plugin and on the CPU, against loops over the numbers.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "reduction/gpu_reducer.hpp"
#include "reduction/tile.hpp"
#include "runtime_test.hpp"

namespace gapless::tests {
namespace {

using reduction::Operator;

template <class Number>
constexpr reduction::Number name_of() {
  if constexpr (std::is_floating_point_v<Number>)
    return sizeof(Number) == 4 ? reduction::Number::float32 : reduction::Number::float64;
  if constexpr (std::is_signed_v<Number>)
    return sizeof(Number) == 4 ? reduction::Number::int32 : reduction::Number::int64;
  return sizeof(Number) == 4 ? reduction::Number::uint32 : reduction::Number::uint64;
}

/// What MPI says of one element. Sums and products of integers wrap around.
template <class Number>
Number combined(Operator op, Number a, Number b) {
  if (op == Operator::least) return std::min(a, b);
  if (op == Operator::greatest) return std::max(a, b);
  if constexpr (std::is_integral_v<Number>) {
    Number result{};
    op == Operator::sum ? static_cast<void>(__builtin_add_overflow(a, b, &result))
                        : static_cast<void>(__builtin_mul_overflow(a, b, &result));
    return result;
  } else {
    return op == Operator::sum ? a + b : a * b;
  }
}

template <class Number>
std::vector<Number> random_numbers(RandomLayouts& random, std::size_t count) {
  std::vector<Number> numbers(count);
  for (Number& number : numbers) {
    const std::uint64_t bits = random.bits();
    number = std::is_integral_v<Number> ? static_cast<Number>(bits)
                                        : static_cast<Number>(static_cast<std::int64_t>(bits)) / Number(1e15);
  }
  return numbers;
}

class ReducerTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (runtime_ == nullptr || IsSkipped()) return;
    const device::Plugin plugin = device::load_plugin(plugin_path(GetParam()));
    const auto open =
        reinterpret_cast<decltype(&gapless_reduction_open)>(dlsym(plugin.library, "gapless_reduction_open"));
    ASSERT_NE(open, nullptr);
    EXPECT_EQ(open(0), nullptr) << "another version's";
    reducer_ = open(gapless_reduction_interface_version);
    ASSERT_NE(reducer_, nullptr);
  }

  /// Of operands that begin so many numbers behind aligned addresses. `in_place`: the operand that the result replaces;
  /// -1: none.
  template <class Number>
  void expect_right(RandomLayouts& random, Operator op, std::size_t numbers, unsigned operands, std::size_t shift,
                    int in_place) {
    std::vector<std::vector<Number>> values;
    std::vector<std::unique_ptr<Memory>> memories;
    reduction::Job job{{op, name_of<Number>()}, numbers, nullptr, operands, {}};
    const std::size_t bytes = (numbers + shift + 1) * sizeof(Number);
    for (unsigned k = 0; k <= operands; ++k) {  // the last one is the result's
      values.push_back(random_numbers<Number>(random, numbers + shift + 1));
      memories.push_back(std::make_unique<Memory>(*runtime_, MemoryKind::device, bytes));
      std::vector<char> contents(bytes);
      std::memcpy(contents.data(), values[k].data(), bytes);
      memories[k]->fill(contents);
      if (k < operands) job.operands[k] = memories[k]->pointer() + shift * sizeof(Number);
    }
    const auto result = in_place >= 0 ? static_cast<unsigned>(in_place) : operands;
    job.result = memories[result]->pointer() + shift * sizeof(Number);
    std::vector<Number> wanted = values[result];
    for (std::size_t i = shift; i < shift + numbers; ++i) {
      wanted[i] = values[0][i];
      for (unsigned k = 1; k < operands; ++k) wanted[i] = combined(op, wanted[i], values[k][i]);
    }
    expect_ok(reducer_->reduce(job, 0, stream_));
    expect_ok(runtime_->synchronize(0, stream_));
    for (unsigned k = 0; k <= operands; ++k) {
      const std::vector<char> contents = memories[k]->contents();
      ASSERT_EQ(0, std::memcmp(contents.data(), (k == result ? wanted : values[k]).data(), bytes))
          << "memory " << k << " of " << operands << " operands, " << numbers << " numbers, shift " << shift;
    }
  }

  template <class Number>
  void expect_right_everywhere(RandomLayouts& random) {
    constexpr auto tile = static_cast<Offset>(reduction::numbers_per_tile);
    for (const Operator op : {Operator::sum, Operator::product, Operator::least, Operator::greatest}) {
      for (int round = 0; round < 6; ++round) {
        const auto numbers =
            static_cast<std::size_t>(random.number(0, 2) == 0 ? random.number(0, 9) : random.number(1, 3 * tile));
        const auto operands = static_cast<unsigned>(random.number(1, reduction::Job::most_operands));
        const auto shift = static_cast<std::size_t>(random.number(0, 3));
        const int in_place = static_cast<int>(random.number(-1, operands - 1));
        expect_right<Number>(random, op, numbers, operands, shift, in_place);
      }
    }
  }

  reduction::GpuReducer* reducer_ = nullptr;
};

TEST_P(ReducerTest, NumbersOfEveryKind) {
  RandomLayouts random(random_seed());
  expect_right_everywhere<std::int32_t>(random);
  expect_right_everywhere<std::uint32_t>(random);
  expect_right_everywhere<std::int64_t>(random);
  expect_right_everywhere<std::uint64_t>(random);
  expect_right_everywhere<float>(random);
  expect_right_everywhere<double>(random);
}

TEST_P(ReducerTest, WholeTiles) {
  RandomLayouts random(random_seed());
  expect_right<double>(random, Operator::sum, 4 * reduction::numbers_per_tile, 2, 0, -1);
  expect_right<float>(random, Operator::greatest, 4 * reduction::numbers_per_tile + 3, 3, 0, 0);
}

GAPLESS_FOR_EVERY_PLUGIN(ReducerTest);

template <class Number>
void expect_combined_on_host(RandomLayouts& random) {
  for (const Operator op : {Operator::sum, Operator::product, Operator::least, Operator::greatest}) {
    const std::size_t count = 100;
    const auto with = random_numbers<Number>(random, count);
    auto into = random_numbers<Number>(random, count), wanted = into;
    for (std::size_t i = 0; i < count; ++i) wanted[i] = combined(op, with[i], into[i]);
    // At addresses that are not aligned.
    std::vector<std::byte> a(count * sizeof(Number) + 1), b(a.size());
    std::memcpy(a.data() + 1, with.data(), count * sizeof(Number));
    std::memcpy(b.data() + 1, into.data(), count * sizeof(Number));
    reduction::combining({op, name_of<Number>()})(a.data() + 1, b.data() + 1, count);
    EXPECT_EQ(0, std::memcmp(b.data() + 1, wanted.data(), count * sizeof(Number)));
  }
}

TEST(Combining, OnTheHost) {
  RandomLayouts random(random_seed());
  expect_combined_on_host<std::int32_t>(random);
  expect_combined_on_host<std::uint64_t>(random);
  expect_combined_on_host<float>(random);
  expect_combined_on_host<double>(random);
}

}  // namespace
}  // namespace gapless::tests
