// How packed bytes are given to the library: as MPI_PACKED, which matches every datatype on the other side.
//
// Under Open MPI packed bytes are *split*: the last byte stands behind a gap of one byte. Open MPI 5.0.11 moves a long
// message between two contiguous buffers of a node by one copy of the sender's length, from process to process: a
// message that is too long overruns the receive. Messages of noncontiguous buffers go through shared memory in pieces,
// are truncated as MPI demands, and arrive sooner (docs/decisions.md).
#pragma once

#include <cstddef>
#include <limits>

#include "mpi/datatypes/types_by_size.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/message.hpp"

namespace gapless::mpi {

/// Does the library send so many contiguous bytes in one piece, and noncontiguous ones in two?
bool is_in_one_piece_if_contiguous(std::size_t bytes) noexcept;

/// Are packed bytes in host memory split at that side of a message? Packed bytes in GPU memory never are: only
/// contiguous messages go straight from one GPU to another.
bool is_split(std::size_t bytes, transfer::Side side) noexcept;

/// A datatype of packed bytes, to be given to the library with count 1; a temporary one is to be freed after the call.
MadeType make_packed_type(std::size_t bytes, bool split) noexcept;
void free_packed_type(MadeType& type) noexcept;

/// Frees the datatypes made for split bytes. Precondition: no message is under way, and the library still works.
void free_split_types() noexcept;

/// Count and datatype that name `bytes` packed bytes. Count is the type that the library's function takes.
template <class Count>
class PackedType {
 public:
  PackedType(std::size_t bytes, transfer::Side side, bool is_on_gpu) noexcept
      : bytes_(bytes), is_split_(!is_on_gpu && is_split(bytes, side)), count_(static_cast<Count>(bytes)) {
    const bool counts = bytes <= static_cast<std::size_t>(std::numeric_limits<Count>::max());
    if (counts && !is_split_) [[likely]]
      return;
    count_ = 1;
    type_ = make_packed_type(bytes, is_split_);
  }
  ~PackedType() {
    if (type_.is_temporary) free_packed_type(type_);
  }
  PackedType(const PackedType&) = delete;
  PackedType& operator=(const PackedType&) = delete;

  bool is_usable() const noexcept { return type_.is_usable; }
  Count count() const noexcept { return count_; }
  MPI_Datatype handle() const noexcept { return type_.handle; }

  /// Before sending: puts the last byte where the datatype names it.
  void split(void* packed) const noexcept {
    auto* bytes = static_cast<std::byte*>(packed);
    if (is_split_) bytes[bytes_] = bytes[bytes_ - 1];
  }
  /// After receiving `received` bytes: puts the last byte where the packed stream has it.
  void join(void* packed, std::size_t received) const noexcept {
    auto* bytes = static_cast<std::byte*>(packed);
    if (is_split_ && received == bytes_) bytes[bytes_ - 1] = bytes[bytes_];
  }

 private:
  std::size_t bytes_;
  bool is_split_;
  Count count_;
  MadeType type_{MPI_PACKED, true, false};
};

}  // namespace gapless::mpi
