// One side of a point-to-point call: the memory, count and datatype that the library is given in place of the
// program's.
#pragma once

#include <optional>

#include "model/model.hpp"
#include "mpi/calls/packed_type.hpp"
#include "mpi/calls/received_status.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/corrected_send.hpp"
#include "transfer/operation.hpp"
#include "transfer/packing.hpp"

namespace gapless::mpi {

/// A message that is too long, of which the library says so in its status alone: it has called the handler before,
/// where it has noticed, and MPICH returns MPI_SUCCESS if the handler has returned.
inline constexpr int raised_already = MPI_ERR_TRUNCATE;

/// Count is int or MPI_Count.
template <End end, class Count>
class Side {
 public:
  /// `idle` when the peer is MPI_PROC_NULL: nothing is packed or unpacked.
  Side(const void* memory, Count count, MPI_Datatype datatype, bool idle) noexcept
      : memory_(const_cast<void*>(memory)), count_(count), datatype_(datatype) {
    if (!idle) user_ = identify(memory, count, datatype);
    owner_ = owner_of(user_);
    if (owner_ == Owner::ours) message_.emplace(user_.buffer, side);
    if (message_ && (message_->scheme() == transfer::Scheme::native || must_stay_whole())) message_.reset();
  }

  bool packs() const noexcept { return message_.has_value(); }

  /// Lets the times of earlier sends have a say in the scheme, and times this one. Of a blocking call; comes first.
  void correct(std::optional<transfer::CorrectedSend>& call, std::uint64_t peer) noexcept {
    if (!packs()) return;
    const transfer::Scheme scheme = call.emplace(user_.buffer, message_->scheme(), peer).scheme();
    if (scheme == transfer::Scheme::native) return message_.reset();
    if (scheme != message_->scheme()) message_.emplace(user_.buffer, side, scheme);
  }

  /// False if the call must fail, with the error code in `code`.
  bool prepare(const char* function, int& code) noexcept {
    if (!prepare_by([](transfer::Operation& message) { return message.wait(message.start()); }, function, code))
      return false;
    split();
    return true;
  }
  /// Can packing wait, to be done together with that of others?
  bool may_wait(std::size_t most_bytes) const noexcept {
    return packs() && message_->joins_batches() && message_->packed_size() <= most_bytes;
  }
  std::size_t packed_size() const noexcept { return message_->packed_size(); }
  /// The same of a message that is packed each time that it is sent.
  bool reserve(const char* function, int& code) noexcept {
    return prepare_by([](transfer::Operation& message) { return message.reserve(); }, function, code);
  }
  /// Packs what the memory holds now, together with others. Precondition: reserve() was true, and packs().
  void pack_in(transfer::Batch& batch) noexcept { message_->start_in(batch); }
  /// The batch has been packed.
  void is_packed() noexcept { split(); }
  /// Packs without others, and waits.
  transfer::Result pack_alone() noexcept {
    const transfer::Result result = message_->wait(message_->start());
    split();
    return result;
  }

  /// For calls of which the library does not tell how much they have received: host memory is left to the library, and
  /// GPU memory packed, so that unpack_whole() leaves as it was what does not arrive. Comes before and after prepare().
  void expect_no_status() noexcept {
    if (!user_.is_gpu_memory()) message_.reset();
  }
  int fill(const char* function) noexcept {
    const transfer::Result result = transfer::pack(user_.buffer, memory(), message_->packed_location());
    return result == transfer::Result::ok ? MPI_SUCCESS : gpu_failure(function, result);
  }
  int unpack_whole(const char* function) noexcept {
    const transfer::Result result = message_->wait(message_->finish(message_->packed_size()));
    return result == transfer::Result::ok ? MPI_SUCCESS : gpu_failure(function, result);
  }

  void* memory() noexcept { return packs() ? message_->packed_data() : memory_; }
  Count count() const noexcept { return packs() ? packed_type_->count() : count_; }
  MPI_Datatype datatype() const noexcept { return packs() ? packed_type_->handle() : datatype_; }

  /// The library has received: unpacks that once the batch has run, and has the status tell of no more than is
  /// unpacked. MPI_SUCCESS, or the error that is to be raised.
  int unpack_in(transfer::Batch& batch, ReceivedStatus& status) noexcept {
    if (!status.is_set() || status.source() == MPI_PROC_NULL) return MPI_SUCCESS;
    const std::size_t received = status.bytes();
    if (received > message_->packed_size()) return raised_already;
    packed_type_->join(memory(), received);
    const std::size_t whole = bytes_to_unpack(received);
    message_->finish_in(batch, whole);
    if (whole == received || runtime::is_alone()) return MPI_SUCCESS;
    status.set_bytes(whole);
    return MPI_ERR_TYPE;
  }

  /// The end of a receive that the library answered with `code`. `raise` raises an error of ours.
  template <class Raise>
  int finish_call(ReceivedStatus& status, int code, const char* function, Raise raise) noexcept {
    if (code != MPI_SUCCESS) {
      status.deliver();
      return code;
    }
    transfer::Batch batch;
    code = unpack_in(batch, status);
    const transfer::Result result = batch.run();
    if (result != transfer::Result::ok) code = gpu_failure(function, result);
    status.deliver();
    return code == MPI_SUCCESS || code == raised_already ? code : raise(code);
  }

 private:
  static constexpr transfer::Side side = end == End::send ? transfer::Side::sender : transfer::Side::receiver;

  template <class Prepare>
  bool prepare_by(Prepare prepare, const char* function, int& code) noexcept {
    if (owner_ == Owner::unserved) {
      code = unserved_gpu_memory(function, user_.buffer.location.device);
      return false;
    }
    if (!packs()) {
      if (counts_native_messages) record_native(count_, datatype_);
      return true;
    }
    transfer::Result result = prepare(*message_);
    if (result == transfer::Result::ok) {
      const bool is_on_gpu = message_->packed_location().kind == device::MemoryKind::device;
      packed_type_.emplace(message_->packed_size(), end, is_on_gpu);
      if (packed_type_->is_usable()) return true;
      result = transfer::Result::out_of_memory;
    }
    if (user_.is_gpu_memory()) {
      code = gpu_failure(function, result);
      return false;
    }
    // No host memory to pack into: the library has its own way without.
    message_.reset();
    return true;
  }

  void split() noexcept {
    if (end == End::send && packs()) packed_type_->split(memory());
  }

  bool must_stay_whole() const noexcept {
    if (end == End::receive || user_.is_gpu_memory()) return false;
    return is_long_enough_to_be_cut(message_->packed_size()) && !type_cache::find(datatype_)->may_be_cut;
  }

  // MPICH receives whole basic elements of short messages only, and tells of a part of one that a message ends with,
  // but in jobs of one process. Open MPI receives the part. (MPI_Get_elements is not asked: MPICH 5.0.2 divides by zero
  // for some datatypes with pairs.)
  std::size_t bytes_to_unpack(std::size_t received) const noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
    return received;
#else
    const bool is_short = static_cast<double>(received) <= model::mpich_on_host.eager_bytes;
    const layout::ElementsPointer& elements = user_.buffer.type->elements;
    if (!is_short || elements == nullptr || received == message_->packed_size()) return received;
    return static_cast<std::size_t>(elements->whole(static_cast<layout::Offset>(received)));
#endif
  }

  void* memory_;
  Count count_;
  MPI_Datatype datatype_;
  UserBuffer user_;
  Owner owner_ = Owner::library;
  std::optional<transfer::Operation> message_;
  std::optional<PackedType<Count>> packed_type_;
};

template <class Count>
using Sending = Side<End::send, Count>;
template <class Count>
using Receiving = Side<End::receive, Count>;

}  // namespace gapless::mpi
