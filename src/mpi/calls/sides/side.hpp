// What both sides of a point-to-point call have in common: the program's memory, count and datatype; the operation that
// packs or unpacks that memory where packing is sooner; and the memory, count and datatype that the library gets
// instead.
//
// Order of calls, with calls that not every message needs in brackets. A send: constructor, [weigh_request], offer,
// [correct], prepare, the library's call, sent, [complete, while the message needs its memory]. A receive: constructor,
// [weigh_request], [comes_from, where the source is an argument; take_match, where a probe has matched the message],
// prepare, the library's call, finish_call; or unpack_in and note_unpacked, where one batch completes several messages.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "model/gpu.hpp"
#include "mpi/calls/sides/packed_type.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/operation.hpp"

namespace gapless::mpi {

/// Count is int or MPI_Count.
template <class Count>
class Side {
 public:
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  bool packs() const noexcept { return message_.has_value(); }
  bool is_ours_on_host() const noexcept { return owner_ == Owner::ours && !user_.is_gpu_memory(); }
  /// May a message in contiguous GPU memory join others? A library that reads GPU memory takes longer for GPU memory
  /// than for host memory, so short messages may go through host memory where one kernel packs or unpacks several.
  bool may_join() const noexcept {
    const auto most_bytes = static_cast<std::size_t>(model::gpu_tuning.longest_joining);
    return owner_ == Owner::library && user_.is_gpu_memory() && user_.is_described() &&
           described_size() <= most_bytes && runtime::library_reads_gpu_memory() && !transfer::is_any_forced();
  }

  void* memory() noexcept { return packs() ? message_->packed_data() : memory_; }
  Count count() const noexcept { return packs() ? packed_type_->count() : count_; }
  MPI_Datatype datatype() const noexcept { return packs() ? packed_type_->handle() : datatype_; }

 protected:
  Side(const void* memory, Count count, MPI_Datatype datatype) noexcept
      : memory_(const_cast<void*>(memory)), count_(count), datatype_(datatype) {}
  ~Side() = default;

  void join(transfer::Side side) noexcept {
    owner_ = Owner::ours;
    message_.emplace(user_.buffer, side, transfer::Scheme::oneshot);
  }

  /// Finds out what buffer the arguments name, and whose business the buffer is.
  void look_at_arguments(Analysis analysis, device::Locator* locator) noexcept {
    user_ = identify(memory_, count_, datatype_, Purpose::message, analysis, locator);
    owner_ = owner_of(user_);
  }

  /// Bytes of data; 0 where the datatype is opaque.
  std::size_t described_size() const noexcept {
    return user_.is_described() ? static_cast<std::size_t>(user_.buffer.size()) : 0;
  }

  /// False, with the error code in `code`, where neither gapless nor the library can read the memory.
  bool is_served(const char* function, int& code) const noexcept {
    if (owner_ != Owner::unserved) return true;
    code = unserved_gpu_memory(function, user_.buffer.location.device);
    return false;
  }

  /// Counts the message among those that go to the library as they came, if it does. To be called once a message.
  void count_if_native(transfer::Side side) noexcept {
    if (!counts_native_messages || packs()) return;
    is_counted_as_native_ = true;
    record_native(count_, datatype_, side);
  }
  /// To be called when a header has come in the message's place.
  void count_no_more(transfer::Side side) noexcept {
    if (std::exchange(is_counted_as_native_, false)) take_back_native(count_, datatype_, side);
  }

  /// Has `prepare` make the operation ready, if there is one, and makes the datatype of its packed bytes. Without host
  /// memory for the packed bytes, the message goes the library's own way if `may_be_native()`. False if the call must
  /// fail, with the error code in `code`.
  template <class Prepare, class MayBeNative>
  bool prepare_packed(Prepare prepare, transfer::Side side, bool may_split, MayBeNative may_be_native,
                      const char* function, int& code) noexcept {
    if (!packs()) return true;
    transfer::Result result = prepare(*message_);
    if (result == transfer::Result::ok) {
      const bool is_on_gpu = message_->packed_location().kind == device::MemoryKind::device;
      packed_type_.emplace(message_->packed_size(), side, is_on_gpu || !may_split);
      if (packed_type_->is_usable()) return true;
      result = transfer::Result::out_of_memory;
    }
    const bool is_on_host = !user_.is_gpu_memory();
    if (is_on_host && may_be_native()) {
      message_.reset();
      return true;
    }
    code = is_on_host ? MPI_ERR_NO_MEM : transfer_failure(function, result);
    return false;
  }

  void* memory_;
  Count count_;
  MPI_Datatype datatype_;
  UserBuffer user_;
  Owner owner_ = Owner::library;
  bool is_counted_as_native_ = false;
  std::optional<transfer::Operation> message_;  ///< none where the message goes as the program gave it
  std::optional<PackedType<Count>> packed_type_;
};

/// How an operation is made ready: start_and_wait() packs, reserve_memory() gets memory alone, for packing later.
inline transfer::Result start_and_wait(transfer::Operation& message) noexcept { return message.wait(message.start()); }
inline transfer::Result reserve_memory(transfer::Operation& message) noexcept { return message.reserve(); }

}  // namespace gapless::mpi
