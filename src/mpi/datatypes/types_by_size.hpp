// Datatypes of so many bytes, and those that the library makes once for each size.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// Commits a datatype that has been made; one that cannot be committed is freed, and the result false.
bool commit(MPI_Datatype& made) noexcept;
/// Makes and commits one of `bytes` elements of `byte`, a datatype of one byte, also of more than an int counts: in
/// large chunks. The last byte lies behind a gap of one if they are `split`. False if the library makes none.
bool make_of_chunks(MPI_Datatype byte, std::size_t bytes, bool split, MPI_Datatype& made) noexcept;

struct MadeType {
  MPI_Datatype handle{};
  bool is_usable = false;
  bool is_temporary = false;  ///< whoever has it frees it
};

class TypesBySize {
 public:
  /// Makes and commits one; false if the library makes none.
  using Make = bool (*)(std::size_t bytes, MPI_Datatype& made) noexcept;
  constexpr explicit TypesBySize(Make make) noexcept : make_(make) {}

  /// One of so many bytes, at least 1. Where all places are taken a temporary one: none in use is ever freed.
  /// Thread-safe; takes no lock for a size that has been met.
  MadeType get(std::size_t bytes) noexcept;
  /// Frees those that are kept. Precondition: none is in use, and the library works.
  void free_all() noexcept;

 private:
  /// Readers take no lock: a slot's size is set last.
  struct Slot {
    std::atomic<std::size_t> bytes{0};
    MPI_Datatype handle{};
  };
  static constexpr std::size_t ways = 4, set_bits = 7;
  using Set = std::array<Slot, ways>;

  Set& set_of(std::size_t bytes) noexcept;
  const Slot* find(std::size_t bytes) noexcept;
  MadeType add(std::size_t bytes) noexcept;

  Make make_;
  std::array<Set, std::size_t{1} << set_bits> sets_{};
  std::mutex mutex_;  ///< for writers
};

}  // namespace gapless::mpi
