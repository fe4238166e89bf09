// Bytes received for an opaque datatype. A header may come to such a receive, so the receive has memory of gapless, and
// the library unpacks the bytes that arrive.
#pragma once

#include <cstddef>
#include <exception>
#include <limits>
#include <memory>

#include "device/location.hpp"
#include "layout/datatype/datatype.hpp"
#include "mpi/calls/by_library.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/datatypes/types_by_size.hpp"
#include "mpi/table/native.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/header.hpp"

namespace gapless::mpi {

class OpaqueBytes {
 public:
  OpaqueBytes() noexcept = default;
  ~OpaqueBytes() {
    if (datatype_ != MPI_DATATYPE_NULL) native.Type_free(&datatype_);
  }
  OpaqueBytes(const OpaqueBytes&) = delete;
  OpaqueBytes& operator=(const OpaqueBytes&) = delete;

  /// Takes part in the receive of `count` elements, if the receive has room for a header. Count is int or MPI_Count.
  /// The program may free the datatype as soon as the receive has begun.
  template <class Count>
  void begin(Count count, MPI_Datatype datatype) noexcept {
    MPI_Count size = 0, all = 0;
    native.Type_size_x(datatype, &size);
    const bool is_too_long = __builtin_mul_overflow(size, static_cast<MPI_Count>(count), &all) ||
                             all > static_cast<MPI_Count>(std::numeric_limits<Count>::max());
    if (is_too_long || all < static_cast<MPI_Count>(transfer::headers::Header::size)) return;
    size_ = static_cast<std::size_t>(all);
    // Not a duplicate, for which the library would call the program's callbacks of attributes.
    if (native.Type_contiguous(1, datatype, &datatype_) != MPI_SUCCESS || !commit(datatype_))
      datatype_ = MPI_DATATYPE_NULL;
  }
  explicit operator bool() const noexcept { return size_ != 0; }
  std::size_t size() const noexcept { return size_; }
  std::byte* data() noexcept { return memory_.data(); }

  /// Gets memory for the bytes, and has `user` describe the memory as a buffer of bytes. False where there is no
  /// memory.
  bool reserve(UserBuffer& user) noexcept {
    if (datatype_ == MPI_DATATYPE_NULL) return false;
    try {
      memory_ = transfer::PoolBuffer(device::MemoryKind::host, -1, size_);
      if (!memory_) return false;
      const auto size = static_cast<layout::Offset>(size_);
      auto described = std::make_shared<transfer::Described>();
      described->layout = layout::named(size, size).layout;
      described->facts = layout::facts_of(*described->layout);
      described->extent = size;
      described->contiguous_repeats = true;
      user.description = std::move(described);
      user.buffer = {user.description.get(), 1, memory_.data(), {}};
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// Notes that so many bytes have arrived.
  void note_arrived(std::size_t bytes) noexcept { arrived_ = bytes; }
  /// Has the library unpack the bytes that have arrived.
  void unpack(void* memory) noexcept {
    if (arrived_ != 0) static_cast<void>(by_library::unpack(memory_.data(), arrived_, memory, datatype_));
    arrived_ = 0;
  }

 private:
  transfer::PoolBuffer memory_;
  MPI_Datatype datatype_ = MPI_DATATYPE_NULL;  ///< of one element
  std::size_t size_ = 0;
  std::size_t arrived_ = 0;
};

}  // namespace gapless::mpi
