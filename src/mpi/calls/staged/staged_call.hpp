// Calls whose memory is staged through packed host memory, made from the roles of their arguments: collectives,
// reductions and file access, blocking ones and those that return a request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "mpi/calls/files/file_pieces.hpp"
#include "mpi/calls/files/file_view.hpp"
#include "mpi/calls/files/split_access.hpp"
#include "mpi/calls/one_sided/one_sided.hpp"
#include "mpi/calls/staged/staged_memory.hpp"
#include "mpi/calls/staged/staged_request.hpp"
#include "mpi/lifetime/errors_caught.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi {

using table::has_role;

enum class Staging { none, blocking, nonblocking, persistent, one_sided, split };

/// How calls of that row are staged. Calls whose memory datatypes describe, and that are no messages, are staged.
template <class Row>
consteval Staging staging_of() {
  using enum table::RoleKind;
  bool has_buffers = false;
  for (const table::Role& role : Row::argument_roles) {
    if (!table::is_memory(role.kind)) continue;
    if (!is_sent(role.kind) && !is_received(role.kind) && role.kind != broadcast) return Staging::none;
    has_buffers = true;
  }
  constexpr auto has = [](table::RoleKind kind) consteval { return has_role<Row>(kind); };
  if (!has_buffers || has(destination) || has(source)) return Staging::none;
  if (has(window) && !has(new_request)) return has(target) || has(target_rank) ? Staging::one_sided : Staging::none;
  if (has(file) && !has(status) && !has(new_request)) return Staging::split;
  if (has(new_persistent_request)) return Staging::persistent;
  if (has(new_request)) return has(communicator) || has(file) || has(window) ? Staging::nonblocking : Staging::none;
  const bool is_over =
      has(communicator) || has(operation) || has(packed_in) || has(packed_out) || (has(file) && has(status));
  return is_over ? Staging::blocking : Staging::none;
}

/// Is one of the call's memories packed bytes, and another what they are packed from or unpacked to?
template <class Row>
consteval bool has_packed_buffer() {
  return has_role<Row>(table::RoleKind::packed_in) || has_role<Row>(table::RoleKind::packed_out);
}

/// Reductions call an operation with the program's datatype, and external packing converts its elements.
template <class Row>
consteval bool keeps_datatypes() {
  using enum table::RoleKind;
  return has_role<Row>(operation) || has_packed_buffer<Row>() || (has_role<Row>(window) && has_role<Row>(send_one));
}

/// May a call of that row be made as several (mpi/calls/files/file_pieces.hpp)? A call by the shared file pointer may
/// not.
template <class Row>
consteval bool may_go_in_pieces() {
  using enum table::RoleKind;
  return staging_of<Row>() == Staging::blocking && has_role<Row>(file) && !has_role<Row>(collective_file) &&
         (has_role<Row>(file_offset) || has_role<Row>(file_pointer));
}

/// Is noncontiguous host memory packed where packing pays?
template <class Row>
consteval bool packs_host_memory() {
  using enum table::RoleKind;
  return staging_of<Row>() != Staging::none && has_role<Row>(communicator) && !has_role<Row>(operation);
}

template <class Row>
consteval std::size_t memory_count() {
  std::size_t count = 0;
  for (const table::Role& role : Row::argument_roles) count += table::is_memory(role.kind) ? 1 : 0;
  return count;
}

/// The arguments of a call, in the form that code for all calls takes.
template <class Row, class... Arguments>
class CallView {
 public:
  using Tuple = std::tuple<Arguments...>;
  static constexpr std::size_t memories = memory_count<Row>();

  template <std::size_t i>
  static constexpr table::Role memory_role = [] {
    std::array<table::Role, memories> found{};
    std::size_t n = 0;
    for (const table::Role& role : Row::argument_roles) {
      if (table::is_memory(role.kind)) found[n++] = role;
    }
    return found[i];
  }();
  template <table::RoleKind kind>
  static constexpr int place = table::place_of(Row::argument_roles, kind);

  static CallFacts facts(const Tuple& all) noexcept {
    CallFacts call;
    call.name = Row::name;
    if constexpr (place<table::RoleKind::communicator> != table::nowhere) {
      call.has_communicator = true;
      call.communicator = std::get<place<table::RoleKind::communicator>>(all);
    }
    if constexpr (place<table::RoleKind::root> != table::nowhere) {
      call.has_root = true;
      call.root = std::get<place<table::RoleKind::root>>(all);
    }
    call.has_file = place<table::RoleKind::file> != table::nowhere;
    call.keeps_datatypes = keeps_datatypes<Row>();
    call.is_persistent = staging_of<Row>() == Staging::persistent;
    call.may_leave_memory = has_role<Row>(table::RoleKind::result_of_scan) || !call.has_communicator;
    return call;
  }

  template <std::size_t i>
  static MemoryArgument memory(const Tuple& all) noexcept {
    constexpr table::Role role = memory_role<i>;
    MemoryArgument argument;
    argument.kind = role.kind;
    argument.only_at_root = role.only_at_root;
    argument.memory = std::get<static_cast<std::size_t>(role.places[0])>(all);
    if constexpr (is_one_element(role.kind)) {
      argument.counts = Integers(MPI_Count{1});
    } else {
      argument.counts = Integers(std::get<static_cast<std::size_t>(role.places[1])>(all));
    }
    if constexpr (has_displacements(role.kind) || has_datatypes(role.kind))
      argument.displacements = Integers(std::get<static_cast<std::size_t>(role.places[2])>(all));
    if constexpr (has_datatypes(role.kind)) {
      argument.datatypes = std::get<datatype_place<i>>(all);
    } else if constexpr (has_datatype(role.kind)) {
      argument.datatype = std::get<datatype_place<i>>(all);
    } else {
      argument.datatype = MPI_BYTE;
    }
    return argument;
  }
  static std::array<MemoryArgument, memories> memories_of(const Tuple& all) noexcept {
    auto made = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::array<MemoryArgument, memories>{memory<i>(all)...};
    }
    (std::make_index_sequence<memories>());
    if constexpr (has_role<Row>(table::RoleKind::operand_of_all) || has_role<Row>(table::RoleKind::operand_of_all_v))
      made[1].holds_operand = made[0].is_in_place();
    return made;
  }

  template <std::size_t i>
  static void substitute(Tuple& all, const Substitute& with) noexcept {
    constexpr table::Role role = memory_role<i>;
    if constexpr (is_exchanged_with_self(role.kind)) {
      auto& counts = std::get<static_cast<std::size_t>(role.places[1])>(all);
      if (with.counts != nullptr) counts = static_cast<std::remove_reference_t<decltype(counts)>>(with.counts);
    }
    if constexpr (has_role<Row>(table::RoleKind::file)) {
      if (with.is_empty || with.is_one) std::get<static_cast<std::size_t>(role.places[1])>(all) = with.is_empty ? 0 : 1;
    }
    if (!with.is_staged || (with.keeps_shape && with.memory == nullptr)) return;
    std::get<static_cast<std::size_t>(role.places[0])>(all) = with.memory;
    if (with.keeps_shape) return;
    if constexpr (has_displacements(role.kind) || has_datatypes(role.kind)) {
      auto& displacements = std::get<static_cast<std::size_t>(role.places[2])>(all);
      displacements = static_cast<std::remove_reference_t<decltype(displacements)>>(with.displacements);
    }
    if constexpr (has_datatypes(role.kind)) {
      std::get<datatype_place<i>>(all) = with.datatypes;
    } else if constexpr (has_datatype(role.kind)) {
      std::get<datatype_place<i>>(all) = with.datatype;
    }
  }
  static Tuple substituted(Tuple all, const StagedMemory& memory) noexcept {
    [&]<std::size_t... i>(std::index_sequence<i...>) { (substitute<i>(all, memory.substitute(i)), ...); }
    (std::make_index_sequence<memories>());
    return all;
  }

  static void substitute(Tuple& all, const FilePiece& piece) noexcept {
    constexpr table::Role role = memory_role<0>;
    std::get<static_cast<std::size_t>(role.places[0])>(all) = piece.memory;
    std::get<static_cast<std::size_t>(role.places[1])>(all) = piece.bytes;
    std::get<datatype_place<0>>(all) = MPI_BYTE;
    std::get<place<table::RoleKind::status>>(all) = piece.status;
    if constexpr (has_role<Row>(table::RoleKind::file_offset))
      std::get<place<table::RoleKind::file_offset>>(all) += piece.etypes;
  }

 private:
  template <std::size_t i>
  static constexpr auto datatype_place =
      static_cast<std::size_t>(memory_role<i>.places[place_of_datatype(memory_role<i>.kind)]);
};

/// A call of which some memory may have to be staged.
template <class Row, class... Arguments>
class StagedCall {
 public:
  [[gnu::noinline]] static int run(const CallFacts& facts, Arguments... arguments) noexcept {
    const Tuple all(arguments...);
    if constexpr (is_one_sided) {
      const MPI_Win window = std::get<View::template place<table::RoleKind::window>>(all);
      if (std::get<target>(all) == MPI_PROC_NULL || one_sided::is_none(window))
        return std::apply(Row::native_function(), all);
    }
    if constexpr (has_packed_buffer<Row>()) {
      return run_on_part(facts, all);
    } else {
      return run_on(facts, all);
    }
  }

 private:
  using View = CallView<Row, Arguments...>;
  using Tuple = typename View::Tuple;

  static int run_on(const CallFacts& facts, const Tuple& all) noexcept {
    if constexpr (staging_of<Row>() == Staging::one_sided || staging_of<Row>() == Staging::split) {
      return begin(facts, all);
    } else if constexpr (staging_of<Row>() != Staging::blocking) {
      return start(facts, all);
    } else {
      if constexpr (may_go_in_pieces<Row>()) {
        if (const std::optional<int> code = in_pieces(all)) return *code;
      }
      StagedMemory memory;
      if (const std::optional<int> over = prepare(memory, facts, all)) return *over;
      memory.pack();
      const int code = call_library(all, memory);
      if (code != MPI_SUCCESS) return code;
      const int ours = memory.finish();
      return ours == MPI_SUCCESS ? code : table::raise<Row>(ours, all);
    }
  }

  /// External packing into, or out of, a buffer in GPU memory: the library gets as much of the buffer as the call can
  /// touch, for all that it gets is staged. Where it may run into the buffer's end, it gets the buffer.
  static int run_on_part(const CallFacts& facts, const Tuple& all) noexcept {
    constexpr std::size_t packed = has_role<Row>(table::RoleKind::packed_in) ? 0 : 1;
    constexpr auto places = View::template memory_role<packed>.places;
    const auto buffer = std::get<static_cast<std::size_t>(places[0])>(all);
    const auto size = std::get<static_cast<std::size_t>(places[1])>(all);
    auto* const position = std::get<static_cast<std::size_t>(places[2])>(all);
    if (position == nullptr || *position < 0 || *position > size || !is_gpu_memory(buffer)) return run_on(facts, all);
    const MPI_Count most = most_external_bytes(View::template memory<1 - packed>(all));
    const auto begin = *position;
    if (most <= 0 || most >= size - begin) return run_on(facts, all);
    std::remove_cv_t<decltype(begin)> moved = 0;
    Tuple part = all;
    std::get<static_cast<std::size_t>(places[0])>(part) =
        const_cast<void*>(address_of(buffer, static_cast<std::intptr_t>(begin)));
    std::get<static_cast<std::size_t>(places[1])>(part) = static_cast<std::remove_cv_t<decltype(size)>>(most);
    std::get<static_cast<std::size_t>(places[2])>(part) = &moved;
    const int code = run_on(facts, part);
    *position = begin + moved;
    return code;
  }

  static constexpr bool is_one_sided = has_role<Row>(table::RoleKind::window);
  using Work = std::conditional_t<is_one_sided, one_sided::Requested, StagedWork>;
  static constexpr int target = View::template place < has_role<Row>(table::RoleKind::target)
                                    ? table::RoleKind::target
                                    : table::RoleKind::target_rank > ;
  static constexpr Life life = staging_of<Row>() == Staging::persistent ? Life::persistent : Life::once;
  static constexpr table::RoleKind request =
      life == Life::persistent ? table::RoleKind::new_persistent_request : table::RoleKind::new_request;

  /// Prepares the memory. The result of a call that is over: it has nothing to stage, or cannot be staged.
  static std::optional<int> prepare(StagedMemory& memory, const CallFacts& facts, const Tuple& all) noexcept {
    CallFacts call = facts;
    if constexpr (has_role<Row>(table::RoleKind::file))
      call.keeps_datatypes = call.converts =
          view_of(std::get<View::template place<table::RoleKind::file>>(all)).converts;
    const auto verdict = memory.prepare(call, View::memories_of(all));
    if (verdict == StagedMemory::Verdict::as_it_is) return std::apply(Row::native_function(), all);
    if (verdict == StagedMemory::Verdict::failed) return table::raise<Row>(memory.code(), all);
    return std::nullopt;
  }

  /// Is a one-sided call that could not be packed to be refused? No process waits for such a call, so it is not begun.
  static bool is_refused(const StagedMemory& memory) noexcept { return is_one_sided && !memory.is_packed(); }

  /// Only a call that has not failed has filled the staged memory.
  static int call_library(const Tuple& all, const StagedMemory& memory) noexcept {
    ErrorsCaught errors(table::error_object<Row>(all));
    return errors.raise(std::apply(Row::native_function(), View::substituted(all, memory)));
  }

  /// Makes the call in pieces. Nothing where the call goes whole.
  static std::optional<int> in_pieces(const Tuple& all) noexcept {
    FilePieces pieces({Row::name, std::get<View::template place<table::RoleKind::file>>(all),
                       View::template memory<0>(all), std::get<View::template place<table::RoleKind::status>>(all),
                       has_role<Row>(table::RoleKind::file_pointer)});
    if (!pieces.are_due()) return std::nullopt;
    const auto move_one = [](const void* call, const FilePiece& piece) {
      Tuple arguments = *static_cast<const Tuple*>(call);
      View::substitute(arguments, piece);
      return std::apply(Row::native_function(), arguments);
    };
    return pieces.run(move_one, &all);
  }

  static int begin(const CallFacts& facts, const Tuple& all) noexcept {
    constexpr bool is_split = staging_of<Row>() == Staging::split;
    using Operation = std::conditional_t<is_split, split_access::Access, one_sided::Operation>;
    std::unique_ptr<Operation> operation(new (std::nothrow) Operation);
    if (operation == nullptr)
      return table::raise<Row>(transfer_failure(Row::name, transfer::Result::out_of_memory), all);
    StagedMemory& memory = operation->memory;
    if (const std::optional<int> over = prepare(memory, facts, all)) return *over;
    memory.pack();
    if (is_refused(memory)) return table::raise<Row>(memory.finish(), all);
    const int code = call_library(all, memory);
    if (code != MPI_SUCCESS) return code;
    if constexpr (is_split) {
      split_access::begin(std::move(operation), std::get<View::template place<table::RoleKind::file>>(all));
    } else {
      one_sided::begin(std::move(operation), std::get<View::template place<table::RoleKind::window>>(all),
                       std::get<target>(all));
    }
    return code;
  }

  static int start(const CallFacts& facts, const Tuple& all) noexcept {
    // The library refuses the call.
    if (std::get<View::template place<request>>(all) == nullptr) return std::apply(Row::native_function(), all);
    std::unique_ptr<Work> work(new (std::nothrow) Work);
    if (work == nullptr) return table::raise<Row>(transfer_failure(Row::name, transfer::Result::out_of_memory), all);
    StagedMemory& memory = work->memory();
    if (const std::optional<int> over = prepare(memory, facts, all)) return *over;
    if constexpr (life == Life::once) memory.pack();
    if (is_refused(memory)) return table::raise<Row>(memory.finish(), all);
    const Begun begun{View::substituted(all, memory), *work};
    return place_under_request(
        std::move(work), life, Row::name, table::error_object<Row>(all), std::get<View::template place<request>>(all),
        [](const void* begun) { return static_cast<const Begun*>(begun)->run(); }, &begun);
  }

  /// A call that returns a request.
  struct Begun {
    Tuple arguments;
    Work& work;

    int run() const noexcept {
      const int code = std::apply(Row::native_function(), arguments);
      if constexpr (is_one_sided) {
        if (code == MPI_SUCCESS)
          work.begin(std::get<View::template place<table::RoleKind::window>>(arguments), std::get<target>(arguments));
      }
      return code;
    }
  };
};

}  // namespace gapless::mpi
