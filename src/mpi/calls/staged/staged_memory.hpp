// All memory of one call, staged where necessary or where that pays, from the call to the end of the operation.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/calls/staged/staged_argument.hpp"
#include "transfer/buffers/placeholder.hpp"

namespace gapless::mpi {

/// What the library gets in the place of one argument.
struct Substitute {
  bool is_staged = false;
  bool keeps_shape = false;  ///< the layout in `memory` is that of the program's memory
  bool is_empty = false;     ///< the call is to read and write nothing
  bool is_one = false;       ///< one element of `datatype` replaces all of the program's
  void* memory = nullptr;
  const void* counts = nullptr;             ///< an array of the program's type; null: the program's array
  const void* displacements = nullptr;      ///< an array of the program's type, or null
  MPI_Datatype datatype{};                  ///< of all parts; or
  const MPI_Datatype* datatypes = nullptr;  ///< of each
};

/// From so many bytes on, gapless copies what a process exchanges with itself straight from one layout into the other.
/// The library would pack and unpack.
inline constexpr layout::Offset shortest_own_part = 4096;

/// Does that kind of argument have a count of its own for each process?
constexpr bool is_exchanged_with_self(table::RoleKind kind) noexcept {
  using enum table::RoleKind;
  return kind == send_to_all_v || kind == receive_from_all_v || kind == send_to_all_w || kind == receive_from_all_w;
}

class StagedMemory {
 public:
  static constexpr std::size_t most_arguments = 3;
  enum class Verdict {
    as_it_is,  ///< the call goes to the library as it came
    staged,    ///< the call goes to the library with the substitutes
    failed,    ///< the call does not go to the library, and code() is to be raised
  };

  /// Finds out what is to be staged, and gets the memory for staging.
  Verdict prepare(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept;
  int code() const noexcept { return code_; }
  const Substitute& substitute(std::size_t i) const noexcept { return substitutes_[i]; }

  /// Packs what the call reads. After a failure the call goes on all the same, because its other processes would wait
  /// for this one, and finish() returns the error. The same holds for collective calls where prepare() finds no memory
  /// to stage with: messages come from and go to a placeholder, and of a file nothing is read or written.
  void pack() noexcept;
  bool is_packed() const noexcept { return result_ == transfer::Result::ok; }
  /// Unpacks what the call has written. MPI_SUCCESS, or the error that is to be raised.
  int finish() noexcept;

 private:
  struct Use {
    bool reads = false;
    bool writes = false;
  };

  void describe(std::span<const MemoryArgument> arguments);
  /// Takes what this process exchanges with itself out of the call. False if that stays with the library.
  bool separate_own_part(std::span<const MemoryArgument> arguments);
  Verdict stage(std::size_t i, const MemoryArgument& argument, bool is_sent_on);
  /// Substitutes an argument that cannot be staged, for the reason that code_ says.
  Verdict without_staging(std::size_t i, const MemoryArgument& argument) noexcept;
  /// The same for all arguments, where there is no memory to describe them.
  Verdict without_memory(std::span<const MemoryArgument> arguments) noexcept;
  bool make_substitute(std::size_t i, const MemoryArgument& argument);
  template <class Displacement>
  bool make_displacements(std::size_t i, const MemoryArgument& argument);
  Use use_of(const MemoryArgument& argument) const noexcept;

  CallFacts call_;
  std::array<StagedArgument, most_arguments> staged_;
  std::array<Substitute, most_arguments> substitutes_;
  std::array<transfer::Placeholder, most_arguments> placeholders_;
  std::array<Use, most_arguments> uses_{};
  bool in_place_ = false;
  int own_part_ = -1;  ///< the part that gapless copies itself
  int code_ = MPI_SUCCESS;
  transfer::Result result_ = transfer::Result::ok;
};

}  // namespace gapless::mpi
