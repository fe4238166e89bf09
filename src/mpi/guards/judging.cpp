#include "mpi/guards/judging.hpp"

#include <cstddef>

#include "base/hash.hpp"
#include "device/device.hpp"
#include "mpi/calls/staged/staged_memory.hpp"
#include "mpi/datatypes/type_cache.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "transfer/choice/choose.hpp"

namespace gapless::mpi {
namespace {

/// The GPU that has memory at that address, or -1.
int gpu_at(const void* address) noexcept {
  const device::Location location = device::locate(address);
  return location.kind == device::MemoryKind::device ? location.device : -1;
}

/// The GPU that has the first byte that the datatype names there, or -1.
int gpu_of_part(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept {
  if (count <= 0) return -1;
  const TypeRecord& record = *type_cache::find_for_use(memory, count, datatype, Purpose::message);
  return gpu_at(address_of(memory, record.first_byte));
}

/// The GPU of the first part that is GPU memory, or -1. Each part has a displacement. Only absolute displacements lead
/// to more than one allocation: of relative ones the first part stands for all.
int gpu_of_parts(const CallFacts& call, const MemoryArgument& argument) noexcept {
  const bool have_datatypes = has_datatypes(argument.kind);
  if (!have_datatypes && !runtime::is_usable(argument.datatype)) return gpu_at(argument.memory);
  const auto entries = peers_in(call, argument.kind);
  for (std::size_t k = 0; k < entries; ++k) {
    if (argument.counts[k] <= 0) continue;
    auto displacement = static_cast<std::intptr_t>(argument.displacements[k]);
    if (displacement != 0 && !have_datatypes) displacement *= extent_of(argument.datatype);
    const MPI_Datatype datatype = have_datatypes ? argument.datatypes[k] : argument.datatype;
    const int found = gpu_of_part(address_of(argument.memory, displacement), argument.counts[k], datatype);
    if (found >= 0 || argument.memory != MPI_BOTTOM) return found;
  }
  return -1;
}

/// The GPU that has the memory of an argument, or -1. The argument may lie outside, as MPI_BOTTOM does and an array's
/// element 0 where indices begin at 1: datatypes and displacements lead to the memory. One question for each argument,
/// but of MPI_BOTTOM.
int gpu_of(const CallFacts& call, const MemoryArgument& argument) noexcept {
  if (!matters_here(call, argument)) return -1;
  if (!has_datatype(argument.kind)) return gpu_at(argument.memory);
  if (has_datatypes(argument.kind) || has_displacements(argument.kind)) return gpu_of_parts(call, argument);
  return gpu_of_part(argument.memory, argument.counts.is_array() ? 1 : argument.counts[0], argument.datatype);
}

/// Is nothing of an argument that matters here read or written, because its counts are 0?
bool is_untouched(const CallFacts& call, const MemoryArgument& argument) noexcept {
  if (!argument.counts.is_array()) return argument.counts[0] == 0;
  const auto entries = peers_in(call, argument.kind);
  for (std::size_t k = 0; k < entries; ++k) {
    if (argument.counts[k] != 0) return false;
  }
  return true;
}

bool is_plain(const TypeRecord& record, MPI_Count count) noexcept {
  if (record.plain) return true;
  return count == 1 && record.one_is_native_in_message && !(record.one_is_lost_beside_gpu && device::in_use());
}

bool is_worth_copying_here(const TypeRecord& record, MPI_Count count) noexcept {
  return record.described != nullptr && record.described->layout->size * count >= shortest_own_part &&
         !transfer::is_forced(transfer::Scheme::native);
}

const TypeRecord& record_of(const CallFacts& call, const void* memory, MPI_Count count,
                            MPI_Datatype datatype) noexcept {
  return call.is_persistent ? *type_cache::find(datatype)
                            : *type_cache::find_for_use(memory, count, datatype, Purpose::message);
}

}  // namespace

int gpu_of_call(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept {
  for (const MemoryArgument& argument : arguments) {
    const int gpu = gpu_of(call, argument);
    if (gpu >= 0 && !is_untouched(call, argument)) return gpu;
  }
  return -1;
}

bool is_left_to_library(const CallFacts& call, const MemoryArgument& argument, bool on_gpu) noexcept {
  if (!matters_here(call, argument)) return true;
  if (!argument.counts.is_array()) {
    const MPI_Count count = argument.counts[0];
    if (count <= 0) return true;
    const TypeRecord& record = record_of(call, argument.memory, count, argument.datatype);
    return on_gpu ? record.plain : is_plain(record, count);
  }
  const bool have_datatypes = has_datatypes(argument.kind);
  const TypeRecord* const shared = have_datatypes ? nullptr : &record_of(call, argument.memory, 2, argument.datatype);
  if (shared != nullptr && shared->plain) return true;
  const auto entries = peers_in(call, argument.kind);
  float saving_ns = 0;
  for (std::size_t k = 0; k < entries; ++k) {
    const MPI_Count count = argument.counts[k];
    if (count <= 0) continue;
    const auto displacement = have_datatypes ? static_cast<std::intptr_t>(argument.displacements[k]) : 0;
    const TypeRecord& record =
        have_datatypes ? record_of(call, address_of(argument.memory, displacement), count, argument.datatypes[k])
                       : *shared;
    if (record.plain) continue;
    if (on_gpu || count > 1 || (device::in_use() && !is_plain(record, count))) return false;
    saving_ns += record.part_saving_ns;
    // What a process exchanges with itself is copied here even where messages are better left to the library.
    if (is_exchanged_with_self(argument.kind) && is_worth_copying_here(record, count) &&
        own_rank(call.communicator) == static_cast<int>(k))
      return false;
  }
  return saving_ns <= 0;
}

bool is_longer_than_extent(const CallFacts& call, const MemoryArgument& argument) noexcept {
  if (!matters_here(call, argument) || argument.is_in_place() || argument.counts[0] <= 0) return false;
  const TypeRecord* const record = type_cache::find_in_table(argument.datatype);
  if ((record != nullptr && record->plain) || !runtime::is_usable(argument.datatype)) return false;
  MPI_Count lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  native.Type_get_extent_x(argument.datatype, &lower, &extent);
  native.Type_get_true_extent_x(argument.datatype, &true_lower, &true_extent);
  return true_extent > extent;
}

std::uint64_t trial_key(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept {
  constexpr MPI_Count least_bytes = 16384;
  std::uint64_t key = number_of(call.communicator);
  MPI_Count bytes = 0;
  for (const MemoryArgument& argument : arguments) {
    if (!has_datatypes(argument.kind) || argument.is_in_place()) return 0;
    const auto entries = peers_in(call, argument.kind);
    for (std::size_t k = 0; k < entries; ++k) {
      const MPI_Count count = argument.counts[k];
      if (count <= 0) continue;
      const TypeRecord* const record = type_cache::find_in_table(argument.datatypes[k]);
      if (record == nullptr) return 0;
      if (!record->plain) bytes += record->size * count;
      key = mix(mix(key, record->kind), static_cast<std::uint64_t>(count));
    }
  }
  return bytes >= least_bytes ? key | 1 : 0;
}

}  // namespace gapless::mpi
