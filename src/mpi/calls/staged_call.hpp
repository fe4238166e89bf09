// Calls whose GPU memory is staged through host memory, made from the roles of their arguments: blocking collectives,
// reductions and file access on libraries that cannot read GPU memory.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "mpi/calls/count_arrays.hpp"
#include "mpi/calls/staged_argument.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi {

// Which roles are read and which are written; how many parts they have.
constexpr bool is_reduced(table::Kind kind) noexcept {
  using enum table::Kind;
  return kind == operand || kind == operand_of_all || kind == operand_of_all_v || kind == result || kind == result_v;
}
constexpr bool is_sent(table::Kind kind) noexcept {
  using enum table::Kind;
  return kind == send || kind == send_to_all || kind == send_to_all_v || kind == send_to_all_w ||
         kind == send_to_neighbors || kind == send_to_neighbors_v || kind == send_to_neighbors_w || kind == operand ||
         kind == operand_of_all || kind == operand_of_all_v;
}
constexpr bool is_received(table::Kind kind) noexcept {
  using enum table::Kind;
  return kind == receive || kind == receive_from_all || kind == receive_from_all_v || kind == receive_from_all_w ||
         kind == receive_from_neighbors || kind == receive_from_neighbors_v || kind == receive_from_neighbors_w ||
         kind == result || kind == result_v;
}
constexpr bool has_displacements(table::Kind kind) noexcept {
  using enum table::Kind;
  return kind == send_to_all_v || kind == receive_from_all_v || kind == send_to_neighbors_v ||
         kind == receive_from_neighbors_v;
}
constexpr bool has_datatypes(table::Kind kind) noexcept {
  using enum table::Kind;
  return kind == send_to_all_w || kind == receive_from_all_w || kind == send_to_neighbors_w ||
         kind == receive_from_neighbors_w;
}
constexpr CountsOf peers_of(table::Kind kind) noexcept {
  using enum table::Kind;
  if (kind == send_to_neighbors || kind == send_to_neighbors_v || kind == send_to_neighbors_w)
    return CountsOf::destinations;
  if (kind == receive_from_neighbors || kind == receive_from_neighbors_v || kind == receive_from_neighbors_w)
    return CountsOf::sources;
  return CountsOf::processes;
}

/// Can calls of that row be staged? Those that are over when they return, and whose memory is described by datatypes.
template <class Row>
consteval bool can_be_staged() {
  using enum table::Kind;
  bool has_buffers = false;
  for (const table::Role& role : Row::argument_roles) {
    if (!table::is_memory(role.kind)) continue;
    if (!is_sent(role.kind) && !is_received(role.kind) && role.kind != broadcast) return false;
    has_buffers = true;
  }
  const auto has = [](table::Kind kind) { return table::place_of(Row::argument_roles, kind) != table::nowhere; };
  if (has(new_request) || has(window)) return false;
  return has_buffers && (has(communicator) || has(operation) || (has(file) && has(status)));
}

/// One call with the arguments of that row, some of which are GPU memory.
template <class Row, class... Arguments>
class StagedCall {
 public:
  using Tuple = std::tuple<Arguments...>;

  explicit StagedCall(const Tuple& arguments) noexcept : arguments_(arguments) {}

  /// The result of the call; its errors are raised.
  int run(int gpu) noexcept {
    try {
      return run_roles(gpu, std::make_index_sequence<role_count>());
    } catch (const std::exception&) {
      return raise(gpu_failure(Row::name, transfer::Result::out_of_memory));
    }
  }

 private:
  using Kind = table::Kind;
  static constexpr std::size_t role_count = Row::argument_roles.size();
  static constexpr int communicator = table::place_of(Row::argument_roles, Kind::communicator);
  static constexpr int root = table::place_of(Row::argument_roles, Kind::root);
  template <std::size_t i>
  static constexpr table::Role role = Row::argument_roles[i];
  template <std::size_t i, std::size_t k>
  auto& argument() noexcept {
    return std::get<static_cast<std::size_t>(role<i>.places[k])>(arguments_);
  }

  template <std::size_t... i>
  int run_roles(int gpu, std::index_sequence<i...>) {
    in_place_ = (has_in_place<i>() || ...);
    if (!(describe<i>() && ...)) return raise(unserved_gpu_memory(Row::name, gpu));
    // A rank that fails enters the collective all the same, or the others would wait for it.
    transfer::Result result = transfer::Result::ok;
    const auto note = [&](transfer::Result of) {
      if (result == transfer::Result::ok) result = of;
    };
    (allocate<i>(gpu, note), ...);
    if (result == transfer::Result::out_of_memory) return raise(gpu_failure(Row::name, result));
    (pack<i>(note), ...);
    const Tuple original = arguments_;
    if (!(substitute<i>() && ...)) return raise(unserved_gpu_memory(Row::name, gpu));
    const int code = std::apply(Row::native_function(), std::exchange(arguments_, original));
    if (code != MPI_SUCCESS) return code;
    if (result == transfer::Result::ok) (unpack<i>(note), ...);
    return result == transfer::Result::ok ? MPI_SUCCESS : raise(gpu_failure(Row::name, result));
  }

  int raise(int code) noexcept { return table::raise<Row>(code, arguments_); }

  template <std::size_t i>
  bool has_in_place() noexcept {
    if constexpr (table::is_memory(role<i>.kind)) {
      return static_cast<const void*>(argument<i, 0>()) == static_cast<const void*>(MPI_IN_PLACE);
    } else {
      return false;
    }
  }

  /// Is this process's the buffer that a broadcast starts from?
  bool is_sender() noexcept { return is_root(std::get<communicator>(arguments_), std::get<root>(arguments_)); }

  template <std::size_t i>
  bool matters_here() noexcept {
    if constexpr (!table::is_memory(role<i>.kind)) {
      return false;
    } else {
      if (has_in_place<i>()) return false;
      if constexpr (role<i>.only_at_root) return is_sender();
      if constexpr (role<i>.kind == Kind::broadcast) return std::get<root>(arguments_) != MPI_PROC_NULL;
      return true;
    }
  }

  template <std::size_t i>
  std::vector<Part> parts() {
    constexpr Kind kind = role<i>.kind;
    const void* memory = argument<i, 0>();
    const auto peers = [&] {
      if constexpr (communicator == table::nowhere) {
        return 1;
      } else {
        return count_entries(std::get<communicator>(arguments_), peers_of(kind));
      }
    };
    if constexpr (has_displacements(kind)) {
      MPI_Count lower = 0, extent = 0;
      const MPI_Datatype datatype = argument<i, 3>();
      native.Type_get_extent_x(datatype, &lower, &extent);
      std::vector<Part> result;
      for (int k = 0; k < peers(); ++k) {
        const auto at = static_cast<std::intptr_t>(argument<i, 2>()[k] * extent);
        result.push_back({address_of(memory, at), argument<i, 1>()[k], datatype});
      }
      return result;
    } else if constexpr (has_datatypes(kind)) {
      std::vector<Part> result;
      for (int k = 0; k < peers(); ++k) {
        const auto at = static_cast<std::intptr_t>(argument<i, 2>()[k]);
        result.push_back({address_of(memory, at), argument<i, 1>()[k], argument<i, 3>()[k]});
      }
      return result;
    } else if constexpr (kind == Kind::operand_of_all_v) {
      const auto* counts = argument<i, 1>();
      return {{memory, std::accumulate(counts, counts + peers(), MPI_Count{0}), argument<i, 2>()}};
    } else if constexpr (kind == Kind::result_v) {
      int rank = 0;
      native.Comm_rank(std::get<communicator>(arguments_), &rank);
      return {{memory, argument<i, 1>()[rank], argument<i, 2>()}};
    } else {
      const bool for_each = kind == Kind::send_to_all || kind == Kind::receive_from_all ||
                            kind == Kind::send_to_neighbors || kind == Kind::receive_from_neighbors ||
                            kind == Kind::operand_of_all;
      return {{memory, argument<i, 1>() * MPI_Count{for_each ? peers() : 1}, argument<i, 2>()}};
    }
  }

  template <std::size_t i>
  bool describe() {
    if (!matters_here<i>()) return true;
    if constexpr (table::is_memory(role<i>.kind)) return staged_[i].describe(parts<i>(), is_reduced(role<i>.kind));
    return true;
  }

  template <std::size_t i>
  void allocate(int gpu, auto note) noexcept {
    if (staged_[i].is_staged()) note(staged_[i].allocate(gpu));
  }

  template <std::size_t i>
  void pack(auto note) noexcept {
    constexpr Kind kind = role<i>.kind;
    if (!staged_[i].is_staged()) return;
    // What the call may leave as it was: the end of a file, the result of a scan's first process.
    constexpr bool may_stay = is_reduced(kind) || communicator == table::nowhere;
    bool reads = is_sent(kind) || (is_received(kind) && (in_place_ || may_stay));
    if constexpr (kind == Kind::broadcast) reads = is_sender();
    if (reads) note(staged_[i].pack());
  }

  template <std::size_t i>
  void unpack(auto note) noexcept {
    constexpr Kind kind = role<i>.kind;
    if (!staged_[i].is_staged()) return;
    bool writes = is_received(kind);
    if constexpr (kind == Kind::broadcast) writes = !is_sender();
    if (writes) note(staged_[i].unpack());
  }

  /// False if a displacement is more than its type can say.
  template <std::size_t i>
  bool substitute() {
    constexpr Kind kind = role<i>.kind;
    if constexpr (table::is_memory(kind)) {
      const StagedArgument& staged = staged_[i];
      if (!staged.is_staged()) return true;
      argument<i, 0>() = staged.memory();
      if constexpr (has_displacements(kind)) {
        MPI_Count elements = 0;
        argument<i, 3>() = staged.shared_datatype(argument<i, 3>());
        return substitute_displacements<i>(
            [&](std::size_t k) { return std::exchange(elements, elements + argument<i, 1>()[k]); });
      } else if constexpr (has_datatypes(kind)) {
        argument<i, 3>() = staged.datatypes();
        return substitute_displacements<i>([&](std::size_t k) { return staged.offset(k); });
      } else if constexpr (!is_reduced(kind)) {
        argument<i, 2>() = staged.shared_datatype(argument<i, 2>());
      }
    }
    return true;
  }

  template <std::size_t i>
  bool substitute_displacements(auto displacement_of) {
    using Displacement = std::remove_cvref_t<decltype(*argument<i, 2>())>;
    const std::size_t parts = staged_[i].part_count();
    displacements_[i].reset(new std::byte[parts * sizeof(Displacement)]);
    auto* displacements = reinterpret_cast<Displacement*>(displacements_[i].get());
    for (std::size_t k = 0; k < parts; ++k) {
      const MPI_Count displacement = displacement_of(k);
      if (displacement > static_cast<MPI_Count>(std::numeric_limits<Displacement>::max())) return false;
      displacements[k] = static_cast<Displacement>(displacement);
    }
    argument<i, 2>() = displacements;
    return true;
  }

  Tuple arguments_;
  std::array<StagedArgument, role_count> staged_;
  std::array<std::unique_ptr<std::byte[]>, role_count> displacements_;
  bool in_place_ = false;
};

}  // namespace gapless::mpi
