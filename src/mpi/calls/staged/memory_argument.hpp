// One memory of a call, whatever types the call's counts and displacements have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "mpi/calls/count_arrays.hpp"
#include "mpi/table/abi.hpp"
#include "mpi/table/roles.hpp"

namespace gapless::mpi {

/// One number, or an array of them.
class Integers {
 public:
  Integers() noexcept = default;
  explicit Integers(MPI_Count one) noexcept : one_(one) {}
  explicit Integers(const int* array) noexcept : array_(array) {}
  template <class Wide>
  explicit Integers(const Wide* array) noexcept : array_(array), is_wide_(true) {
    static_assert(sizeof(Wide) == sizeof(std::int64_t));
  }

  bool is_array() const noexcept { return array_ != nullptr; }
  bool is_wide() const noexcept { return is_wide_; }
  void copy_to(void* memory, std::size_t entries) const noexcept {
    std::memcpy(memory, array_, entries * (is_wide_ ? sizeof(std::int64_t) : sizeof(int)));
  }
  MPI_Count operator[](std::size_t i) const noexcept {
    if (array_ == nullptr) return one_;
    if (!is_wide_) return static_cast<const int*>(array_)[i];
    std::int64_t number;
    std::memcpy(&number, static_cast<const char*>(array_) + i * sizeof number, sizeof number);
    return number;
  }

 private:
  MPI_Count one_ = 0;
  const void* array_ = nullptr;
  bool is_wide_ = false;
};

/// The arguments of one memory role.
struct MemoryArgument {
  table::RoleKind kind{};
  bool only_at_root = false;
  bool holds_operand = false;  ///< of a result: its memory holds the operand as well (MPI_IN_PLACE)
  const void* memory = nullptr;
  Integers counts;
  Integers displacements;
  MPI_Datatype datatype{};                  ///< of all parts; or
  const MPI_Datatype* datatypes = nullptr;  ///< of each

  bool is_in_place() const noexcept { return memory == static_cast<const void*>(MPI_IN_PLACE); }
};

/// The facts of a call that decide which of its memories matter, and which processes have parts.
struct CallFacts {
  const char* name = "";
  bool has_communicator = false;
  bool has_root = false;
  /// The library needs to know the basic elements: of a reduction's operands, or to convert them.
  bool keeps_datatypes = false;
  /// The call may leave received memory as it was, behind the end of a file or in the result of a scan's first process,
  /// or reads that memory.
  bool may_leave_memory = false;
  /// The call is made to be started often, so analysing its datatypes pays at once.
  bool is_persistent = false;
  bool has_file = false;
  /// For a file: the library converts elements between memory and file.
  bool converts = false;
  /// Noncontiguous host memory is packed, whatever the model predicts.
  bool packs_gaps = false;
  MPI_Comm communicator{};
  int root = 0;

  /// Is this process the root?
  bool is_at_root() const noexcept { return is_root(communicator, root); }
  /// Asks the library the first time.
  const Neighbors& neighbors() const noexcept {
    if (!neighbors_) neighbors_.emplace(communicator);
    return *neighbors_;
  }

 private:
  mutable std::optional<Neighbors> neighbors_;
};

/// Does the call read or write that memory in this process?
bool matters_here(const CallFacts& call, const MemoryArgument& argument) noexcept;

/// The memory of one message, or of one process's share of a call.
struct Part {
  const void* memory;
  MPI_Count count;
  MPI_Datatype datatype;
  bool is_missing = false;  ///< there is no process at the other end
};

std::intptr_t extent_of(MPI_Datatype datatype) noexcept;

/// No fewer bytes than memory of one datatype has as external data; negative where the library refuses the memory. Of
/// no element that form is twice as long as the native one.
MPI_Count most_external_bytes(const MemoryArgument& argument) noexcept;

/// How many entries the arrays of an argument of that kind have.
std::size_t peers_in(const CallFacts& call, table::RoleKind kind) noexcept;

/// Lists the parts of an argument in the order of the call's counts, replacing the contents of `parts`. Throws
/// std::bad_alloc.
void list_parts(const CallFacts& call, const MemoryArgument& argument, std::vector<Part>& parts);

/// The same, with a part for each peer also where the call has one count for all peers.
void list_parts_by_peer(const CallFacts& call, const MemoryArgument& argument, std::vector<Part>& parts);

/// This process's part of an argument that has a part of each process, as an argument that goes to all of them.
MemoryArgument own_part_of(const CallFacts& call, const MemoryArgument& argument) noexcept;

/// The addresses from the first byte of an argument to behind the last, by what the library tells of the datatypes.
struct AddressRange {
  std::intptr_t begin = 0, end = 0;
  bool is_gpu_memory = false;  ///< is the first byte of any part in GPU memory?
};
/// Allocates nothing. Empty if the argument names no byte.
AddressRange addresses_of(const CallFacts& call, const MemoryArgument& argument) noexcept;

constexpr bool is_sent(table::RoleKind kind) noexcept {
  using enum table::RoleKind;
  return kind == send || kind == send_one || kind == packed_in || kind == send_to_all || kind == send_to_all_v ||
         kind == send_to_all_w || kind == send_to_neighbors || kind == send_to_neighbors_v ||
         kind == send_to_neighbors_w || kind == operand || kind == operand_of_all || kind == operand_of_all_v;
}
constexpr bool is_received(table::RoleKind kind) noexcept {
  using enum table::RoleKind;
  return kind == receive || kind == receive_one || kind == packed_out || kind == receive_from_all ||
         kind == receive_from_all_v || kind == receive_from_all_w || kind == receive_from_neighbors ||
         kind == receive_from_neighbors_v || kind == receive_from_neighbors_w || kind == result || kind == result_v ||
         kind == result_of_scan;
}
constexpr bool has_displacements(table::RoleKind kind) noexcept {
  using enum table::RoleKind;
  return kind == send_to_all_v || kind == receive_from_all_v || kind == send_to_neighbors_v ||
         kind == receive_from_neighbors_v;
}
constexpr bool has_datatypes(table::RoleKind kind) noexcept {
  using enum table::RoleKind;
  return kind == send_to_all_w || kind == receive_from_all_w || kind == send_to_neighbors_w ||
         kind == receive_from_neighbors_w;
}
constexpr bool is_one_element(table::RoleKind kind) noexcept {
  return kind == table::RoleKind::send_one || kind == table::RoleKind::receive_one;
}
constexpr bool is_partitioned(table::RoleKind kind) noexcept {
  return kind == table::RoleKind::send_partitions || kind == table::RoleKind::receive_partitions;
}
/// Do datatypes describe memory of that kind?
constexpr bool has_datatype(table::RoleKind kind) noexcept {
  using enum table::RoleKind;
  return kind != packed_in && kind != packed_out && kind != memory;
}
/// The place, among a role's arguments, of its datatype or datatypes.
constexpr std::size_t place_of_datatype(table::RoleKind kind) noexcept {
  if (is_one_element(kind)) return 1;
  return has_displacements(kind) || has_datatypes(kind) || is_partitioned(kind) ? 3 : 2;
}
constexpr CountsOf peers_of(table::RoleKind kind) noexcept {
  using enum table::RoleKind;
  if (kind == send_to_neighbors || kind == send_to_neighbors_v || kind == send_to_neighbors_w)
    return CountsOf::destinations;
  if (kind == receive_from_neighbors || kind == receive_from_neighbors_v || kind == receive_from_neighbors_w)
    return CountsOf::sources;
  if (kind == operand_of_all || kind == operand_of_all_v || kind == result_v) return CountsOf::results;
  return CountsOf::processes;
}
constexpr bool is_of_neighbors(table::RoleKind kind) noexcept {
  return peers_of(kind) == CountsOf::sources || peers_of(kind) == CountsOf::destinations;
}

}  // namespace gapless::mpi
