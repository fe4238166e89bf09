// A call that would hand GPU memory to a library that cannot read it is staged through host memory, or ends in a clear
// MPI error instead of a crash. Collectives on noncontiguous host memory are packed where that is faster. Where no GPU
// is in use and datatypes are plain, a guard is a test, a look-up for each datatype and a jump.
#include "mpi/guards/guarded.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "base/hash.hpp"
#include "device/device.hpp"
#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/calls/by_messages/exchange.hpp"
#include "mpi/calls/staged/staged_call.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/rows.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi {
namespace {

using table::RoleKind;

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
  if (!have_datatypes && !runtime::is_usable(argument.datatype)) return -1;
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

/// The GPU of the memory that a call touches, or -1.
int gpu_of_call(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept {
  for (const MemoryArgument& argument : arguments) {
    const int gpu = gpu_of(call, argument);
    if (gpu >= 0 && !is_untouched(call, argument)) return gpu;
  }
  return -1;
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

/// Is nothing of the argument worth packing? Host memory is judged by the most that its parts could save together.
/// `on_gpu`: the call touches GPU memory, for which that says nothing. One look-up for each datatype.
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

/// Of an exchange of parts that have a datatype each, with enough noncontiguous bytes in host memory that what it takes
/// is worth comparing: tells apart exchanges that are not alike. Else 0.
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
      key = mix(mix(key, number_of(argument.datatypes[k])), static_cast<std::uint64_t>(count));
    }
  }
  return bytes >= least_bytes ? key | 1 : 0;
}

/// Does each process exchange a part with each other, or one of its own length with each neighbour? Where there is a
/// root, as of MPI_Scatterv, the others send nothing, and errors that the root alone is told of must not wait for them.
template <class Row>
consteval bool is_exchange() {
  const bool exchanges = has_role<Row>(RoleKind::send_to_all) || has_role<Row>(RoleKind::send_to_all_v) ||
                         has_role<Row>(RoleKind::send_to_all_w) || has_role<Row>(RoleKind::send_to_neighbors_v) ||
                         has_role<Row>(RoleKind::send_to_neighbors_w);
  return staging_of<Row>() == Staging::blocking && exchanges && !has_role<Row>(RoleKind::root) &&
         memory_count<Row>() == 2;
}

template <class Row, class Function>
struct Guard;

template <class Row, class... Arguments>
struct Guard<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    if constexpr (!has_role<Row>(RoleKind::new_request)) requests::start_deferred();
    const Tuple all(arguments...);
    const CallFacts facts = View::facts(all);
    if constexpr (is_exchange<Row>()) {
      if (by_messages::may_be()) [[unlikely]]
        return exchange(facts, all, arguments...);
    }
    return by_library(facts, all, arguments...);
  }

 private:
  using View = CallView<Row, Arguments...>;
  using Tuple = std::tuple<Arguments...>;

  static int by_library(const CallFacts& facts, const Tuple& all, Arguments... arguments) {
    int gpu = -1;
    if (device::in_use()) [[unlikely]] {
      gpu = gpu_of_call(facts, View::memories_of(all));
      if (gpu >= 0 && !runtime::library_reads_gpu_memory()) return with_gpu_memory(facts, gpu, arguments...);
    }
    if constexpr (packs_host_memory<Row>()) {
      const auto memories = View::memories_of(all);
      const bool is_left = std::ranges::all_of(
          memories, [&](const auto& argument) { return is_left_to_library(facts, argument, gpu >= 0); });
      if constexpr (is_exchange<Row>()) {
        const std::uint64_t key = device::has_met_gpu_memory() ? 0 : trial_key(facts, memories);
        if (key != 0) [[unlikely]]
          return try_ways(key, is_left, facts, arguments...);
      }
      if (!is_left) [[unlikely]]
        return StagedCall<Row, Arguments...>::run(facts, arguments...);
    }
    return Row::native_function()(arguments...);
  }

  /// Packed or left to the library, as its kind has been seen to go best.
  [[gnu::noinline]] static int try_ways(std::uint64_t key, bool is_left, const CallFacts& facts,
                                        Arguments... arguments) {
    using transfer::HostWay;
    transfer::HostTrial trial(key);
    CallFacts packing = facts;
    packing.packs_gaps = trial.way() == HostWay::packed;
    const bool packs = trial.way() == HostWay::predicted ? !is_left : packing.packs_gaps;
    const int code =
        packs ? StagedCall<Row, Arguments...>::run(packing, arguments...) : Row::native_function()(arguments...);
    if (code == MPI_SUCCESS) trial.end();
    return code;
  }

  /// By messages, where all ranks have agreed on that.
  [[gnu::noinline]] static int exchange(const CallFacts& facts, const Tuple& all, Arguments... arguments) {
    const std::array<MemoryArgument, View::memories> memories = View::memories_of(all);
    const MemoryArgument &out = memories[0], &in = memories[1];
    const bool is_librarys = out.is_in_place() || (is_of_neighbors(out.kind) && facts.neighbors().are_twins());
    const int kind = is_librarys ? -1 : by_messages::kind_of(out);
    if (kind < 0) return by_library(facts, all, arguments...);
    const by_messages::AgreedExchange exchange(
        facts.communicator, kind, [&](bool are_combined) { return by_messages::wish_of(facts, out, are_combined); },
        [&](auto& exchanged) { return by_messages::reserve(facts, out, exchanged); });
    if (exchange.lane() == MPI_COMM_NULL) {
      if (!exchange.is_timed()) return by_library(facts, all, arguments...);
      CallFacts packing = facts;
      packing.packs_gaps = true;
      return StagedCall<Row, Arguments...>::run(packing, arguments...);
    }
    const int code = by_messages::exchange(facts, out, in, exchange);
    return code == MPI_SUCCESS ? code : table::raise<Row>(code, all);
  }

  [[gnu::cold]] static int with_gpu_memory(const CallFacts& facts, int gpu, Arguments... arguments) noexcept {
    if constexpr (staging_of<Row>() != Staging::none) {
      return StagedCall<Row, Arguments...>::run(facts, arguments...);
    } else {
      return table::raise<Row>(unserved_gpu_memory(Row::name, gpu), std::tie(arguments...));
    }
  }
};

template <class Row, class Function>
struct Waiting;

/// A call that may wait for another process, which may wait for a message that is deferred here.
template <class Row, class... Arguments>
struct Waiting<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    requests::start_deferred();
    const int code = Row::native_function()(arguments...);
    constexpr int made = table::place_of(Row::argument_roles, RoleKind::new_communicator);
    if constexpr (made != table::nowhere) {
      if (code == MPI_SUCCESS) headers::has_been_made(*std::get<made>(std::tie(arguments...)));
    }
    return code;
  }
};

template <class Row>
void add_waiting(std::vector<gapless_variant_entry>& entries, const char* name) {
  if (Row::native_function() == nullptr) return;
  entries.push_back({name, reinterpret_cast<void*>(&Waiting<Row, decltype(Row::native_function())>::call)});
}

template <class Row>
void add(std::vector<gapless_variant_entry>& entries, const char* name) {
  if (Row::native_function() == nullptr) return;
  entries.push_back({name, reinterpret_cast<void*>(&Guard<Row, decltype(Row::native_function())>::call)});
}

}  // namespace

void add_guarded_entries(std::vector<gapless_variant_entry>& entries) {
#define GAPLESS_ADD_intercepted(name)
#define GAPLESS_ADD_guarded(name) GAPLESS_IF_DECLARED(name, add<table::rows::name>(entries, #name);)
#define GAPLESS_ADD_waiting(name) GAPLESS_IF_DECLARED(name, add_waiting<table::rows::name>(entries, #name);)
#define GAPLESS_ADD_endpoints(name)
#define GAPLESS_ADD_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_ADD_##mark(name)
#include "mpi/table/functions.def"
}

}  // namespace gapless::mpi
