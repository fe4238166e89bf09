// How small the words must be: of rows of s words, 104 waiting stores (Zen 5) are 104 / s rows. A stride whose largest
// power of two is p has 4096 / p places for them in a cache whose ways hold 4096 bytes, so that s = p / 256 leaves 6.5
// lines to a set, which has room for 12; half as many words would leave 13. Zen 3 and 4, with 64 waiting stores and
// room for 8 lines, need fewer words (docs/performance.md).

#include "pack/host/set_conflicts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace gapless::pack::host {

constinit const ConflictRules no_conflicts{};

namespace {

constexpr Offset mebibyte = 1 << 20, never = ConflictRule::never;

}  // namespace

constinit const ConflictRules conflicts_of_zen3{
    .stores = {.least_power = {512, 512, 4096}, .most_bytes = 4 * mebibyte, .words = {2, 4, 4, 8}, .long_row = 33},
    .loads = {.least_power = {4096, never, never}, .most_bytes = 4 * mebibyte, .words = {1, 1, 1, 4}},
    .long_rows = LongRows::one_by_one};
constinit const ConflictRules conflicts_of_zen4{
    .stores = {.least_power = {512, 4096, 4096}, .most_bytes = 8 * mebibyte, .words = {2, 4, 4, 4}},
    .loads = {.least_power = {1024, never, never}, .most_bytes = 8 * mebibyte, .words = {1, 2, 4, 4}},
    .long_rows = LongRows::fetched};
constinit const ConflictRules conflicts_of_zen5{.stores = {.least_power = {512, 512, 512}, .words = {2, 4, 8, 16}},
                                                .loads = {}};

constinit std::atomic<const ConflictRules*> conflict_rules{&no_conflicts};

namespace {

constexpr Offset longest_word = 16;

using CopyRows = void(Offset length, Offset count, Offset source_stride, Offset destination_stride, const char* source,
                      char* destination);

template <int word>
[[gnu::always_inline]] inline void move_word(const char* source, char* destination) {
  std::memcpy(destination, source, word);
  asm volatile("" ::: "memory");  // compilers join neighbours otherwise, which is what must not happen
}

/// `words` words of a row without a branch, and the others, if there are any, one by one; the last one may overlap the
/// one before.
template <int word, int words>
void copy_rows(Offset length, Offset count, Offset source_stride, Offset destination_stride, const char* source,
               char* destination) {
  constexpr int first = words * word;
  const auto copy_first = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int i = 0; i < words; ++i) move_word<word>(source + i * word, destination + i * word);
  };
  if (length == first) {
    for (; count > 0; --count, source += source_stride, destination += destination_stride) copy_first();
    return;
  }
  for (; count > 0; --count, source += source_stride, destination += destination_stride) {
    copy_first();
    Offset done = first;
    for (; done + word <= length; done += word) move_word<word>(source + done, destination + done);
    if (done < length) move_word<word>(source + length - word, destination + length - word);
  }
}

/// By the logarithms of the word and of their number.
using Table = std::array<std::array<CopyRows*, 5>, 5>;
constexpr Offset most_words = 16;

template <int... log2_words, int... log2_word>
constexpr Table table_of(std::integer_sequence<int, log2_words...>, std::integer_sequence<int, log2_word...>) {
  const auto row = [](auto word) {
    return std::array<CopyRows*, sizeof...(log2_words)>{copy_rows<decltype(word)::value, 1 << log2_words>...};
  };
  return {row(std::integral_constant<int, 1 << log2_word>())...};
}
constexpr auto five = std::make_integer_sequence<int, 5>();
constexpr Table copies = table_of(five, five);

/// The first of ConflictRule::words.
constexpr Offset least_power_with_words = 512;

int log2_of(Offset power) noexcept { return std::countr_zero(static_cast<std::uint64_t>(power)); }
Offset floor_power(Offset number) noexcept {
  return static_cast<Offset>(std::bit_floor(static_cast<std::uint64_t>(number)));
}

}  // namespace

void copy_conflicting_rows(const ConflictRule& rule, Offset stride, Offset length, Offset count, Offset source_stride,
                           Offset destination_stride, const char* source, char* destination) noexcept {
  // So many words or more make a row, if it is long enough.
  const Offset wanted = rule.words[static_cast<std::size_t>(log2_of(power_of(stride) / least_power_with_words))];
  const Offset word = length >= rule.long_row
                          ? longest_word
                          : std::min(floor_power(std::max(length / wanted, Offset{1})), longest_word);
  const Offset words = floor_power(std::min(length / word, most_words));
  copies[static_cast<std::size_t>(log2_of(word))][static_cast<std::size_t>(log2_of(words))](
      length, count, source_stride, destination_stride, source, destination);
}

}  // namespace gapless::pack::host
