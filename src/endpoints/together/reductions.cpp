// Reductions: operands of the process's endpoints are combined in its memory, in the order of ranks.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "endpoints/calls/forms.hpp"
#include "endpoints/calls/plans.hpp"
#include "endpoints/delivery/bytes.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/together/together.hpp"
#include "endpoints/together/turn.hpp"
#include "mpi/datatypes/built_in_reduction.hpp"
#include "transfer/buffers/placeholder.hpp"

namespace gapless::mpi::endpoints::together {
namespace {

/// Longer operands are combined in two levels: every round of the other way copies them.
constexpr std::size_t most_doubled = 2048;

/// Elements of a datatype that is one run of bytes, so that an address and their number tell them.
struct Elements {
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Count size;                      ///< of one
  reduction::Combine by_us = nullptr;  ///< for operands of no more than `most_doubled` bytes

  /// into = with op into
  int combine(const std::byte* with, std::byte* into, MPI_Count count) const noexcept {
    if (by_us != nullptr) {
      by_us(with, into, static_cast<std::uint64_t>(count));
      return MPI_SUCCESS;
    }
    return inner.Reduce_local(with, into, static_cast<int>(count), datatype, op);
  }
};

/// Host memory, also where the heap has none: other endpoints wait for this one's part.
class Room {
 public:
  /// Null if the system has no addresses left.
  std::byte* reserve(MPI_Count bytes) noexcept {
    heap_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
    memory_ = heap_ != nullptr ? heap_.get() : pages_.reserve(0, static_cast<std::intptr_t>(bytes));
    return memory_;
  }
  std::byte* memory() const noexcept { return memory_; }

 private:
  std::unique_ptr<std::byte[]> heap_;
  transfer::Placeholder pages_;
  std::byte* memory_ = nullptr;
};

/// The program's buffer, or a copy in host memory. Of a buffer that cannot be read the copy is zeros.
class HostBuffer {
 public:
  HostBuffer(Endpoint& endpoint, const Data& data, MPI_Count bytes, bool with_contents) : data_(data) {
    if (!device::in_use() || !is_gpu_memory(data.memory)) return;
    std::byte* const copy = copy_.emplace().reserve(bytes);
    code_ = copy == nullptr ? MPI_ERR_NO_MEM : with_contents ? copy_data(endpoint, data, here()) : MPI_SUCCESS;
    if (copy != nullptr && code_ != MPI_SUCCESS) std::memset(copy, 0, static_cast<std::size_t>(bytes));
  }
  int code() const noexcept { return code_; }
  /// Null if there is none.
  std::byte* memory() const noexcept {
    return copy_ ? copy_->memory() : static_cast<std::byte*>(const_cast<void*>(data_.memory));
  }
  /// The program gets what is in the copy.
  int write_back(Endpoint& endpoint) const noexcept { return copy_ ? copy_data(endpoint, here(), data_) : MPI_SUCCESS; }

 private:
  Data here() const noexcept { return {copy_->memory(), data_.count, data_.datatype}; }
  Data data_;
  std::optional<Room> copy_;
  int code_ = MPI_SUCCESS;
};

/// One reduction of one endpoint.
struct Call {
  Endpoint& endpoint;
  Elements elements;
  MPI_Count count;
  int root;
  int tag;
  int code = MPI_SUCCESS;  ///< why the operand is zeros

  MPI_Count bytes() const noexcept { return count * elements.size; }
  bool gets_result() const noexcept { return root == everyone || root == endpoint.rank; }
};

/// `sum` is this process's part and becomes the result, where that belongs.
int reduce_among_processes(const Call& call, std::byte* sum) noexcept {
  const Communicator& communicator = *call.endpoint.communicator;
  if (!communicator.spans_processes()) return MPI_SUCCESS;
  const InLibrary meanwhile;
  const int count = static_cast<int>(call.count);
  const auto& [datatype, op, size, by_us] = call.elements;
  if (call.root == everyone) return inner.Allreduce(MPI_IN_PLACE, sum, count, datatype, op, communicator.processes);
  const int process = communicator.places[static_cast<std::size_t>(call.root)].process;
  const int root = communicator.leaders[static_cast<std::size_t>(process)];
  const bool is_here = process == communicator.process;
  return inner.Reduce(is_here ? MPI_IN_PLACE : sum, is_here ? sum : nullptr, count, datatype, op, root,
                      communicator.processes);
}

/// The leader combines all operands.
int reduce_by_leader(const Call& call, const std::byte* operand, std::byte* result) {
  Turns turns(call.endpoint);
  const auto length = static_cast<std::size_t>(call.bytes());
  const bool is_inside = length <= sizeof turns.mine().inside;
  if (is_inside) std::memcpy(turns.mine().inside, operand, length);
  turns.mine().memory = operand;
  turns.mine().code = call.code;
  turns.take();
  Seats& seats = turns.seats();
  const bool fits_release = length <= sizeof seats.release.inside;
  if (!turns.is_leader()) {
    const int code = turns.await_release();
    const std::byte* const sum = fits_release ? seats.release.inside : seats.combined;
    if (code == MPI_SUCCESS && call.gets_result()) std::memcpy(result, sum, length);
    return code;
  }
  turns.await_all();
  int code = call.code;
  std::memcpy(seats.combined, operand, length);
  for (int local = 1; local < turns.locals(); ++local) {
    const Seat& seat = turns.seat(local);
    note(code, seat.code);
    const std::byte* const other = is_inside ? seat.inside : static_cast<const std::byte*>(seat.memory);
    note(code, call.elements.combine(other, seats.combined, call.count));
  }
  note(code, reduce_among_processes(call, seats.combined));
  if (fits_release) std::memcpy(seats.release.inside, seats.combined, length);
  turns.release(code);
  if (code == MPI_SUCCESS && call.gets_result()) std::memcpy(result, seats.combined, length);
  return code;
}

/// The endpoint's slice of all operands, combined into the leader's buffer. Piece by piece, so that it stays in the
/// processor's cache meanwhile.
int combine_slice(const Call& call, Turns& turns, std::byte* target) noexcept {
  const MPI_Count size = call.elements.size;
  const MPI_Count first = call.count * call.endpoint.local / turns.locals();
  const MPI_Count end = call.count * (call.endpoint.local + 1) / turns.locals();
  const MPI_Count most = std::max<MPI_Count>(1, most_combined_by_leader / size);
  int code = MPI_SUCCESS;
  for (MPI_Count at = first; at < end; at += most) {
    const MPI_Count count = std::min(most, end - at);
    for (int local = 0; local < turns.locals(); ++local) {
      const std::byte* const from = static_cast<const std::byte*>(turns.seat(local).memory) + at * size;
      std::byte* const into = target + at * size;
      if (local != 0) {
        note(code, call.elements.combine(from, into, count));
      } else if (from != into) {
        std::memcpy(into, from, static_cast<std::size_t>(count * size));
      }
    }
  }
  return code;
}

/// Each endpoint combines a slice. The leader's result is where all slices come together.
int reduce_in_slices(const Call& call, const std::byte* operand, std::byte* result) {
  Turns turns(call.endpoint);
  Seats& seats = turns.seats();
  Room own;
  turns.mine().memory = operand;
  turns.begin();
  if (turns.is_leader()) {
    seats.target = call.gets_result() ? result : own.reserve(call.bytes());
  }
  turns.show();
  turns.await_all();
  std::byte* const target = seats.target;
  turns.mine().code = call.code;
  note(turns.mine().code, target == nullptr ? MPI_ERR_NO_MEM : combine_slice(call, turns, target));
  turns.take();
  int code = MPI_SUCCESS;
  if (turns.is_leader()) {
    turns.await_all();
    for (int local = 0; local < turns.locals(); ++local) note(code, turns.seat(local).code);
    if (target != nullptr) note(code, reduce_among_processes(call, target));
    turns.release(code);
  } else {
    code = turns.await_release();
    if (code == MPI_SUCCESS && call.gets_result()) std::memcpy(result, target, static_cast<std::size_t>(call.bytes()));
  }
  turns.take();
  if (turns.is_leader()) turns.await_all();
  return code;
}

/// No bytes are sent once the reduction has failed.
int send(const Call& call, int so_far, const std::byte* sum, int to) {
  const Data data{sum, so_far == MPI_SUCCESS ? call.bytes() : 0, MPI_BYTE};
  if (send_at_once(call.endpoint, data, to, call.tag, Context::collective)) return MPI_SUCCESS;
  Operation operation;
  if (const int code = set_buffer(operation, call.endpoint, data); code != MPI_SUCCESS) return code;
  start_send(operation, data, to, call.tag, Context::collective, Mode::standard);
  drive_until_done(operation);
  return operation.code;
}

int receive(const Call& call, std::byte* sum, int from) {
  Operation operation;
  operation.receives = true;
  if (const int code = set_buffer(operation, call.endpoint, {sum, call.bytes(), MPI_BYTE}); code != MPI_SUCCESS)
    return code;
  start_receive(operation, from, call.tag, Context::collective);
  drive_until_done(operation);
  if (operation.code == MPI_SUCCESS && operation.bytes != call.bytes()) return operand_missing();
  return operation.code;
}

/// Of a number of ranks that is a power of two, each exchanges its sum with one of twice as far in every round. Both
/// combine the lower rank's sum with the higher one's, so all have the same bits at the end, whatever has no order.
/// Ranks beyond such a number have a neighbour who takes part for them. Where a rank fails, each that it has exchanged
/// with, and each that those exchange with, so all.
int reduce_by_doubling(const Call& call, const std::byte* operand, std::byte* result) {
  const int size = call.endpoint.communicator->size(), rank = call.endpoint.rank;
  const int members = static_cast<int>(std::bit_floor(static_cast<unsigned>(size))), represented = size - members;
  const bool is_paired = rank < 2 * represented, is_represented = is_paired && rank % 2 != 0;
  alignas(64) std::array<std::array<std::byte, most_doubled>, 2> room;
  std::byte *sum = room[0].data(), *other = room[1].data();
  std::memcpy(sum, operand, static_cast<std::size_t>(call.bytes()));
  int code = call.code;
  const auto take = [&](int from) {
    note(code, receive(call, other, from));
    if (code != MPI_SUCCESS) return;
    if (rank < from) std::swap(sum, other);
    note(code, call.elements.combine(other, sum, call.count));
  };
  if (is_represented) {
    note(code, send(call, code, sum, rank - 1));
    note(code, receive(call, sum, rank - 1));
  } else {
    if (is_paired) take(rank + 1);
    const int member = is_paired ? rank / 2 : rank - represented;
    for (int distance = 1; distance < members; distance *= 2) {
      const int peer = member ^ distance;
      const int peer_rank = peer < represented ? 2 * peer : peer + represented;
      note(code, send(call, code, sum, peer_rank));
      take(peer_rank);
    }
    if (is_paired) note(code, send(call, code, sum, rank + 1));
  }
  if (code == MPI_SUCCESS && call.gets_result()) std::memcpy(result, sum, static_cast<std::size_t>(call.bytes()));
  return code;
}

/// MPI_Reduce_local of Open MPI 5.0.11 counts an MPI_Op's uses, in one place that all threads of a process write. Null
/// where the library has to combine all the same.
reduction::Combine combining_by_us(MPI_Op op, MPI_Datatype datatype, MPI_Count size) noexcept {
  const std::optional<BuiltInReduction> found = built_in_reduction(op, datatype, size);
  return found && found->numbers_per_element == 1 ? reduction::combining(found->reduction) : nullptr;
}

/// Is a message to any of the processes' endpoints as cheap as a look at a seat?
bool serves_doubling(const Communicator& communicator, MPI_Count bytes) noexcept {
  return communicator.spans_processes() && !communicator.has_strangers && bytes <= static_cast<MPI_Count>(most_doubled);
}

}  // namespace

bool serves_reduction(const Communicator& communicator, MPI_Count count, MPI_Datatype datatype, MPI_Op op) {
  if (!communicator.is_in_order || communicator.seats == nullptr || count <= 0 || datatype == MPI_DATATYPE_NULL ||
      !plans::is_built_in(op))
    return false;
  const TypeRecord* const record = type_cache::find(datatype);
  return record->is_predefined && record->plain && record->size > 0 && record->first_byte == 0 &&
         count <= most_bytes_in_one_call / record->size && plans::check_operation(op, datatype) == MPI_SUCCESS;
}

int reduce(Endpoint& endpoint, const void* operand, void* result, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
           int root) {
  const MPI_Count size = type_cache::find(datatype)->size;
  const bool doubles = serves_doubling(*endpoint.communicator, count * size);
  const int tag = doubles ? calls::next_tag(endpoint, calls::Form::one_time) : 0;
  const bool is_short = count * size <= static_cast<MPI_Count>(most_doubled);
  const Elements elements{datatype, op, size, is_short ? combining_by_us(op, datatype, size) : nullptr};
  Call call{endpoint, elements, count, root, tag};
  if (operand == MPI_IN_PLACE) operand = result;
  if (is_null_with_displacement(operand) || (call.gets_result() && is_null_with_displacement(result)))
    return MPI_ERR_BUFFER;
  const HostBuffer from(endpoint, {operand, count, datatype}, call.bytes(), true);
  const bool is_apart = operand != result && call.gets_result();
  const HostBuffer aside(endpoint, {is_apart ? result : operand, count, datatype}, is_apart ? call.bytes() : 0, false);
  const HostBuffer& to = is_apart ? aside : from;
  call.code = from.code() != MPI_SUCCESS ? from.code() : to.code();
  if (from.memory() == nullptr || to.memory() == nullptr) return call.code;
  const auto way = doubles                                   ? reduce_by_doubling
                   : call.bytes() <= most_combined_by_leader ? reduce_by_leader
                                                             : reduce_in_slices;
  const int code = way(call, from.memory(), to.memory());
  return code == MPI_SUCCESS && call.gets_result() ? to.write_back(endpoint) : code;
}

}  // namespace gapless::mpi::endpoints::together
