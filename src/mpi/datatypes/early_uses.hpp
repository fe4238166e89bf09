// Uses of datatypes that are not analysed yet: whether the library is to have one more of them.
//
// Analysing a datatype takes as long as many uses of a small one, and as long as several of a list of millions. So the
// first uses in host memory go to the library, until those have cost what the analysis will: then it is made, and over
// the type's whole life at most twice the better of the two was paid. A use that costs many times the analysis does not
// wait. Costs are predicted (src/model/host.hpp), so that the same program is served the same way each time.
//
// What is kept here is keyed by handle alone. MPI_Type_free forgets it; a datatype freed past us leaves it behind for
// the next of that handle, which is then analysed earlier or later than it should. Nothing else follows from it: the
// answer is never about what a datatype is, and asks anew where the memory is.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi {

struct TypeRecord;

/// What a datatype is used for: in a message under a call that blocks, or under a request of one use, or in MPI_Pack.
enum class Purpose : std::uint8_t { message, request, packing };

namespace early_uses {

inline constexpr std::size_t ways = 4;
inline constexpr std::size_t set_bits = 8;

/// Four datatypes, in the cache line that every use of them touches. A thread may read a mixture of two datatypes,
/// which changes when the analysis is made and nothing else.
struct alignas(64) Set {
  std::array<std::atomic<std::uintptr_t>, ways> handles;  ///< number_of(handle), or 0
  std::array<std::atomic<float>, ways> left_ns;     ///< to be spent before the analysis; 0 once it is due, or made
  std::array<std::atomic<float>, ways> element_ns;  ///< what a use costs for each element; negative for long lists
};
extern std::array<Set, std::size_t{1} << set_bits> sets;

inline Set& set_of(std::uintptr_t number) noexcept { return sets[slot_of(number, set_bits)]; }

/// Which way of the set has that number, 0 for a free one; `ways` if none has.
inline std::size_t way_of(const Set& set, std::uintptr_t number) noexcept {
#pragma GCC unroll 4
  for (std::size_t way = 0; way < ways; ++way) {
    if (set.handles[way].load(std::memory_order_relaxed) == number) return way;
  }
  return ways;
}

inline void enter(Set& set, std::size_t way, std::uintptr_t number, float element_ns, float left_ns) noexcept {
  set.handles[way].store(number, std::memory_order_relaxed);
  set.element_ns[way].store(element_ns, std::memory_order_relaxed);
  set.left_ns[way].store(left_ns, std::memory_order_relaxed);
}

/// For the end of a datatype.
inline void forget(std::uintptr_t number) noexcept {
#pragma GCC unroll 4
  for (auto& handle : set_of(number).handles) {
    if (handle.load(std::memory_order_relaxed) == number) handle.store(0, std::memory_order_relaxed);
  }
}

/// What the costs are predicted from until a long list is weighed. Set when the variant is opened.
struct Prices {
  bool are_counted = true;  ///< false: everything is analysed at once
  float use_ns = 0, byte_ns = 0, analysis_ns = 0;
  /// So few cost little beside the analysis: the library is not asked how many they are.
  MPI_Count short_bytes = 0;
};
extern Prices prices;
void set_prices() noexcept;

/// Counts a use of at most `most_bytes` that is neither long nor the last before the analysis, in no more than a few
/// nanoseconds. False: nothing was counted. Precondition: no GPU is in use.
inline bool count_use(MPI_Count count, MPI_Datatype datatype, MPI_Count most_bytes) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::uintptr_t number = number_of(datatype);
  if (number == 0) return false;
  Set& set = set_of(number);
  if (const std::size_t way = way_of(set, number); way != ways) {
    const float element_ns = set.element_ns[way].load(relaxed);
    const float left_ns = set.left_ns[way].load(relaxed) - prices.use_ns - static_cast<float>(count) * element_ns;
    if (count < 0 || element_ns < 0 || left_ns <= 0) return false;
    set.left_ns[way].store(left_ns, relaxed);
    return true;
  }
  if (most_bytes >= prices.short_bytes || datatype == MPI_DATATYPE_NULL) return false;
  const std::size_t way = way_of(set, 0);
  if (way == ways) return false;
  const float bytes_ns = prices.byte_ns * static_cast<float>(most_bytes);
  enter(set, way, number, count <= 1 ? bytes_ns : bytes_ns / static_cast<float>(count),
        prices.analysis_ns - prices.use_ns - bytes_ns);
  return true;
}

/// The record for a use of a datatype that the type cache's table does not hold. Counts the use, and returns a record
/// that leaves the datatype to the library; once the analysis pays, returns the datatype's own record, and analyses the
/// datatype first if that is not done.
const TypeRecord* record_for_use(const void* memory, MPI_Count count, MPI_Datatype datatype, Purpose purpose) noexcept;

void clear_table() noexcept;

}  // namespace early_uses
}  // namespace gapless::mpi
