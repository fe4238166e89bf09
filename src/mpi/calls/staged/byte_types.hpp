// Contiguous datatypes of bytes, made once for each size. In the place of a datatype with gaps, a byte type lets a call
// keep its count.
#pragma once

#include "layout/layout.hpp"
#include "mpi/datatypes/types_by_size.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// A committed datatype of `bytes` bytes. The destructor leaves the handle to the next user, or frees the handle where
/// all places are taken.
class ByteType {
 public:
  ByteType() noexcept = default;
  /// Null if the library makes none.
  explicit ByteType(layout::Offset bytes) noexcept;
  /// A datatype of one element of `datatype` that lies `bytes` bytes behind the address of a call.
  static ByteType displaced(MPI_Datatype datatype, layout::Offset bytes) noexcept;
  ~ByteType();
  ByteType(ByteType&& other) noexcept;
  ByteType& operator=(ByteType&& other) noexcept;

  explicit operator bool() const noexcept { return made_.is_usable; }
  MPI_Datatype handle() const noexcept { return made_.handle; }

 private:
  MadeType made_;
};

/// Frees all byte types. Precondition: no call is under way, and the library still works.
void free_byte_types() noexcept;

}  // namespace gapless::mpi
