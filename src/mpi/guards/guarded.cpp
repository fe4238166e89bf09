// A call that would hand GPU memory to a library that cannot read it is staged through host memory, or ends in a clear
// MPI error instead of a crash. Collectives on noncontiguous host memory are packed where that is faster, and exchanges
// and reductions of GPU memory go by messages where all ranks agree (mpi/calls/by_messages/). Before a guarded call,
// and before one that waits alone, sends that were deferred leave. Where no GPU is in use, nothing is deferred and
// datatypes are plain, a guard is a test, a look-up for each datatype and a jump.
#include "mpi/guards/guarded.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "device/device.hpp"
#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/calls/by_messages/exchange.hpp"
#include "mpi/calls/by_messages/reductions.hpp"
#include "mpi/calls/staged/staged_call.hpp"
#include "mpi/guards/judging.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/rows.hpp"
#include "transfer/choice/host_trial.hpp"

namespace gapless::mpi {
namespace {

using table::RoleKind;

/// Does each process exchange a part with each other, or one of its own length with each neighbour?
template <class Row>
consteval bool is_exchange() {
  const bool exchanges = has_role<Row>(RoleKind::send_to_all) || has_role<Row>(RoleKind::send_to_all_v) ||
                         has_role<Row>(RoleKind::send_to_all_w) || has_role<Row>(RoleKind::send_to_neighbors_v) ||
                         has_role<Row>(RoleKind::send_to_neighbors_w);
  return staging_of<Row>() == Staging::blocking && exchanges && !has_role<Row>(RoleKind::root) &&
         memory_count<Row>() == 2;
}

/// Does each process have one part for all processes, or for all neighbours?
template <class Row>
consteval bool gathers_to_all() {
  using enum RoleKind;
  const bool receives = has_role<Row>(receive_from_all) || has_role<Row>(receive_from_all_v) ||
                        has_role<Row>(receive_from_neighbors) || has_role<Row>(receive_from_neighbors_v);
  return has_role<Row>(send) && receives && !has_role<Row>(root);
}

/// Does a root get a part of the same length from each process?
template <class Row>
consteval bool gathers_equal_parts() {
  using enum RoleKind;
  return staging_of<Row>() == Staging::blocking && has_role<Row>(send) && has_role<Row>(receive_from_all) &&
         has_role<Row>(root);
}

/// Does a root have a part of the same length of, or for, each process? The lengths of MPI_Gatherv's and MPI_Scatterv's
/// parts are known to the root alone, and errors that the root alone is told of must not wait for the others.
template <class Row>
consteval bool has_equal_parts_at_root() {
  using enum RoleKind;
  const bool gathers = has_role<Row>(send) && has_role<Row>(receive_from_all);
  const bool scatters = has_role<Row>(send_to_all) && has_role<Row>(receive);
  return has_role<Row>(root) && (gathers || scatters || has_role<Row>(broadcast));
}

/// May the call go by messages, where all ranks have agreed on that?
template <class Row>
consteval bool may_go_by_messages() {
  const bool has_equal_parts =
      has_role<Row>(RoleKind::send_to_neighbors) || gathers_to_all<Row>() || has_equal_parts_at_root<Row>();
  return is_exchange<Row>() || (staging_of<Row>() == Staging::blocking && has_equal_parts);
}

/// Does the call reduce all ranks' operands alike? Scans do not.
template <class Row>
consteval bool may_be_reduced_by_messages() {
  return staging_of<Row>() == Staging::blocking && has_role<Row>(RoleKind::operation) &&
         has_role<Row>(RoleKind::communicator) && !has_role<Row>(RoleKind::result_of_scan);
}

template <class Row, class Function>
struct Guard;

template <class Row, class... Arguments>
struct Guard<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    if constexpr (!has_role<Row>(RoleKind::new_request)) requests::start_deferred();
    const Tuple all(arguments...);
    const CallFacts facts = View::facts(all);
    if constexpr (may_go_by_messages<Row>()) {
      if (by_messages::may_be()) [[unlikely]]
        return serve_exchange(facts, all, arguments...);
    }
    if constexpr (may_be_reduced_by_messages<Row>()) {
      if (by_messages::may_be()) [[unlikely]]
        return serve_reduction(facts, all, arguments...);
    }
    return serve(facts, all, arguments...);
  }

 private:
  using View = CallView<Row, Arguments...>;
  using Tuple = std::tuple<Arguments...>;

  /// With what the library cannot take as it is staged.
  static int serve(const CallFacts& facts, const Tuple& all, Arguments... arguments) {
    int gpu = -1;
    if (device::in_use()) [[unlikely]] {
      gpu = gpu_of_call(facts, View::memories_of(all));
      if (gpu >= 0 && !runtime::library_reads_gpu_memory()) return with_gpu_memory(facts, gpu, arguments...);
    }
    if constexpr (packs_host_memory<Row>()) {
      const auto memories = View::memories_of(all);
      if constexpr (library_gathers_by_extent && gathers_equal_parts<Row>()) {
        if (is_longer_than_extent(facts, memories[0])) [[unlikely]]
          return pack_gaps(facts, arguments...);
      }
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

  /// With noncontiguous memory packed, whatever the model predicts.
  [[gnu::noinline]] static int pack_gaps(const CallFacts& facts, Arguments... arguments) {
    CallFacts packing = facts;
    packing.packs_gaps = true;
    return StagedCall<Row, Arguments...>::run(packing, arguments...);
  }

  /// Packed or left to the library, as its kind has been seen to go best.
  [[gnu::noinline]] static int try_ways(std::uint64_t key, bool is_left, const CallFacts& facts,
                                        Arguments... arguments) {
    using transfer::HostWay;
    transfer::HostTrial trial(key);
    const HostWay way = trial.way();
    const int code = way == HostWay::packed                  ? pack_gaps(facts, arguments...)
                     : way == HostWay::predicted && !is_left ? StagedCall<Row, Arguments...>::run(facts, arguments...)
                                                             : Row::native_function()(arguments...);
    if (code == MPI_SUCCESS) trial.end();
    return code;
  }

  /// By messages, where all ranks have agreed on that.
  [[gnu::noinline]] static int serve_exchange(const CallFacts& facts, const Tuple& all, Arguments... arguments) {
    const std::array<MemoryArgument, View::memories> memories = View::memories_of(all);
    const int kind = by_messages::kind_of(facts, memories.front(), memories.back());
    if (kind < 0) return serve(facts, all, arguments...);
    const by_messages::Sides sides = by_messages::sides_of(facts, memories.front(), memories.back());
    const by_messages::AgreedExchange exchange(
        facts.communicator, kind, [&](auto mapping) { return by_messages::wish_of(facts, sides, mapping); },
        [&](auto& exchanged) { return by_messages::reserve(facts, sides, exchanged); });
    if (exchange.lane() == MPI_COMM_NULL)
      return exchange.is_timed() ? pack_gaps(facts, arguments...) : serve(facts, all, arguments...);
    const int code = by_messages::exchange(facts, sides, exchange);
    return code == MPI_SUCCESS ? code : table::raise<Row>(code, all);
  }

  /// The same of a reduction.
  [[gnu::noinline]] static int serve_reduction(const CallFacts& facts, const Tuple& all, Arguments... arguments) {
    const std::array<MemoryArgument, View::memories> memories = View::memories_of(all);
    const MPI_Op op = std::get<View::template place<RoleKind::operation>>(all);
    const auto reduction = by_messages::reduction_of(facts, memories.front(), memories.back(), op);
    if (!reduction) return serve(facts, all, arguments...);
    const by_messages::AgreedExchange exchange(
        facts.communicator, reduction->kind, [&](auto mapping) { return by_messages::wish_of(*reduction, mapping); },
        [&](auto& exchanged) { return by_messages::reserve_for_reductions(facts, exchanged); });
    if (exchange.lane() == MPI_COMM_NULL) return serve(facts, all, arguments...);
    const int code = by_messages::reduce(facts, *reduction, exchange);
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
      // MPICH says MPI_SUCCESS after an error handler of the program.
      MPI_Comm* const communicator = std::get<made>(std::tie(arguments...));
      if (code == MPI_SUCCESS && communicator != nullptr) headers::note_made(*communicator);
    }
    return code;
  }
};

template <template <class, class> class Entry, class Row>
void add(std::vector<gapless_variant_entry>& entries, const char* name) {
  if (Row::native_function() == nullptr) return;
  entries.push_back({name, reinterpret_cast<void*>(&Entry<Row, decltype(Row::native_function())>::call)});
}

}  // namespace

void add_guarded_entries(std::vector<gapless_variant_entry>& entries) {
#define GAPLESS_ADD_intercepted(name)
#define GAPLESS_ADD_guarded(name) GAPLESS_IF_DECLARED(name, add<Guard, table::rows::name>(entries, #name);)
#define GAPLESS_ADD_waiting(name) GAPLESS_IF_DECLARED(name, add<Waiting, table::rows::name>(entries, #name);)
#define GAPLESS_ADD_endpoints(name)
#define GAPLESS_ADD_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_ADD_##mark(name)
#include "mpi/table/functions.def"
}

}  // namespace gapless::mpi
