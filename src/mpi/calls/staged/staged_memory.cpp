#include "mpi/calls/staged/staged_memory.hpp"

#include <exception>
#include <limits>

#include "device/device.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/lifetime/errors.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/parts.hpp"

namespace gapless::mpi {

using table::RoleKind;
using transfer::Result;

namespace {

// Files and windows are never packed for speed.
bool may_pack_host_memory(const CallFacts& call) noexcept { return call.has_communicator && !call.keeps_datatypes; }

/// Is this a call that writes into a window?
bool is_put(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept {
  return !call.has_communicator && !call.has_file && arguments.size() == 1 && is_sent(arguments[0].kind);
}

/// Does the library send on to other processes what the call receives there? It does in allgathers.
bool is_sent_on(const CallFacts& call, std::span<const MemoryArgument> arguments, std::size_t i) noexcept {
  const RoleKind kind = arguments[i].kind;
  const bool is_from_all = kind == RoleKind::receive_from_all || kind == RoleKind::receive_from_all_v;
  return is_from_all && arguments[0].kind == RoleKind::send && !call.has_root;
}

}  // namespace

StagedMemory::Verdict StagedMemory::prepare(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept {
  call_ = call;
  try {
    describe(arguments);
    bool any = separate_own_part(arguments);
    // The target of a put takes no part: the library cuts what is put as the datatype says that it is given.
    if (library_loses_cut_elements && is_put(call, arguments) && staged_[0].stays_whole()) call_.keeps_datatypes = true;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Verdict verdict = stage(i, arguments[i], is_sent_on(call, arguments, i));
      if (verdict == Verdict::failed) return verdict;
      any |= verdict == Verdict::staged;
    }
    return any ? Verdict::staged : Verdict::as_it_is;
  } catch (const std::exception&) {
    return without_memory(arguments);
  }
}

void StagedMemory::describe(std::span<const MemoryArgument> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const MemoryArgument& argument = arguments[i];
    in_place_ |= argument.is_in_place();
    if (!matters_here(call_, argument)) continue;
    // Beside a GPU one part that must be packed has all parts of the argument packed, short ones too.
    const bool may_wait = may_pack_host_memory(call_) && !call_.is_persistent && !call_.packs_gaps &&
                          !(library_loses_cut_elements && device::in_use());
    staged_[i].describe(call_, argument, may_wait ? Analysis::when_it_pays : Analysis::now);
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) uses_[i] = use_of(arguments[i]);
}

StagedMemory::Verdict StagedMemory::without_memory(std::span<const MemoryArgument> arguments) noexcept {
  own_part_ = -1;
  substitutes_ = {};
  for (StagedArgument& staged : staged_) staged.leave_to_library();
  bool any = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!matters_here(call_, arguments[i]) || !addresses_of(call_, arguments[i]).is_gpu_memory) continue;
    code_ = transfer_failure(call_.name, Result::out_of_memory);
    if (without_staging(i, arguments[i]) == Verdict::failed) return Verdict::failed;
    any = true;
  }
  return any ? Verdict::staged : Verdict::as_it_is;
}

StagedMemory::Verdict StagedMemory::without_staging(std::size_t i, const MemoryArgument& argument) noexcept {
  staged_[i].leave_to_library();
  Substitute& made = substitutes_[i];
  made.is_staged = made.keeps_shape = true;
  made.is_empty = call_.has_file;
  if (call_.has_communicator) {
    const AddressRange program = addresses_of(call_, argument);
    if (const std::byte* instead = placeholders_[i].reserve(program.begin, program.end)) {
      const std::intptr_t shift = reinterpret_cast<std::intptr_t>(instead) - program.begin;
      made.memory = const_cast<void*>(address_of(argument.memory, shift));
    }
  }
  return made.is_empty || made.memory != nullptr ? Verdict::staged : Verdict::failed;
}

StagedMemory::Verdict StagedMemory::stage(std::size_t i, const MemoryArgument& argument, bool is_sent_on) {
  StagedArgument& staged = staged_[i];
  // The peers' argument at the other end is most likely as this process's own.
  const bool meets_contiguous = i < 2 && staged_[1 - i].is_contiguous();
  staged.choose(argument.kind, call_, may_pack_host_memory(call_), meets_contiguous, is_sent_on);
  const auto unserved = [&] {
    code_ = unserved_gpu_memory(call_.name, staged.gpu());
    return without_staging(i, argument);
  };
  if (staged.has_no_datatype()) return code_ = MPI_ERR_TYPE, Verdict::failed;
  if (staged.is_unserved()) return unserved();
  if (!staged.is_staged()) return Verdict::as_it_is;
  const Result result = staged.allocate();
  if (result != Result::ok && staged.gpu() >= 0) {
    code_ = transfer_failure(call_.name, result);
    return without_staging(i, argument);
  }
  if (result == Result::ok && make_substitute(i, argument)) return Verdict::staged;
  if (staged.gpu() >= 0) return unserved();
  staged.leave_to_library();
  return Verdict::as_it_is;
}

bool StagedMemory::separate_own_part(std::span<const MemoryArgument> arguments) {
  if (arguments.size() != 2 || in_place_) return false;
  for (const MemoryArgument& argument : arguments) {
    if (!is_exchanged_with_self(argument.kind)) return false;
  }
  const int own = own_rank(call_.communicator);
  if (own < 0) return false;
  const auto part = static_cast<std::size_t>(own);
  const UserBuffer &from = staged_[0].part(part), &to = staged_[1].part(part);
  if (!can_be_copied_on_host(from, to)) return false;
  if (transfer::is_contiguous(from.buffer) && transfer::is_contiguous(to.buffer)) return false;
  const bool is_long = from.buffer.size() >= shortest_own_part || transfer::is_forced(transfer::Scheme::packed);
  if (!is_long || transfer::is_forced(transfer::Scheme::native)) return false;
  own_part_ = own;
  for (std::size_t i = 0; i < 2; ++i) {
    staged_[i].leave_out(part);
    const Integers& counts = arguments[i].counts;
    const std::size_t width = counts.is_wide() ? sizeof(std::int64_t) : sizeof(int);
    std::byte* const copy = staged_[i].counts(staged_[i].part_count() * width);
    counts.copy_to(copy, staged_[i].part_count());
    std::memset(copy + part * width, 0, width);
    substitutes_[i].counts = copy;
  }
  return true;
}

/// False if a displacement does not fit its type, and the part's datatype cannot take the displacement in.
bool StagedMemory::make_substitute(std::size_t i, const MemoryArgument& argument) {
  StagedArgument& staged = staged_[i];
  const bool keeps_datatype = call_.keeps_datatypes;
  Substitute& made = substitutes_[i];
  made.is_staged = true;
  made.memory = staged.memory();
  made.datatype = keeps_datatype ? argument.datatype : staged.shared_datatype(argument.datatype);
  if (call_.converts && !staged.is_contiguous_from_its_address()) {
    made.datatype = staged.join();
    made.memory = staged.first_byte();
    made.is_one = true;
    return made.datatype != MPI_DATATYPE_NULL;
  }
  if (has_datatypes(argument.kind)) made.datatypes = staged.datatypes();
  if (!has_displacements(argument.kind) && !has_datatypes(argument.kind)) return true;
  return argument.displacements.is_wide() ? make_displacements<std::int64_t>(i, argument)
                                          : make_displacements<int>(i, argument);
}

template <class Displacement>
bool StagedMemory::make_displacements(std::size_t i, const MemoryArgument& argument) {
  StagedArgument& staged = staged_[i];
  const layout::Offset unit = has_datatypes(argument.kind) ? 1 : staged.shared_size();
  std::byte* const displacements = staged.displacements(staged.part_count() * sizeof(Displacement));
  for (std::size_t k = 0; k < staged.part_count(); ++k) {
    layout::Offset place = staged.offset(k) / unit;
    if (place > std::numeric_limits<Displacement>::max()) {
      if (!has_datatypes(argument.kind) || !staged.displace(k)) return false;
      place = 0;
    }
    const auto displacement = static_cast<Displacement>(place);
    std::memcpy(displacements + k * sizeof displacement, &displacement, sizeof displacement);
  }
  substitutes_[i].displacements = displacements;
  return true;
}

StagedMemory::Use StagedMemory::use_of(const MemoryArgument& argument) const noexcept {
  if (argument.kind == RoleKind::broadcast) {
    const bool sends = call_.root != MPI_PROC_NULL && call_.is_at_root();
    return {sends, !sends};
  }
  const bool writes = is_received(argument.kind);
  return {is_sent(argument.kind) || (writes && (in_place_ || call_.may_leave_memory)), writes};
}

void StagedMemory::pack() noexcept {
  result_ = Result::ok;
  if (own_part_ >= 0) {
    const auto part = static_cast<std::size_t>(own_part_);
    result_ = transfer::copy_on_host(staged_[0].part(part).buffer, staged_[1].part(part).buffer);
  }
  for (std::size_t i = 0; i < most_arguments; ++i) {
    if (!staged_[i].is_staged() || !uses_[i].reads) continue;
    const Result result = staged_[i].pack();
    if (result_ == Result::ok) result_ = result;
    // A file must not get bytes that are not the program's.
    substitutes_[i].is_empty = call_.has_file && result != Result::ok;
  }
}

int StagedMemory::finish() noexcept {
  if (code_ != MPI_SUCCESS) return code_;
  for (std::size_t i = 0; i < most_arguments && result_ == Result::ok; ++i) {
    if (staged_[i].is_staged() && uses_[i].writes) result_ = staged_[i].unpack();
  }
  return result_ == Result::ok ? MPI_SUCCESS : transfer_failure(call_.name, result_);
}

}  // namespace gapless::mpi
