#include "mpi/calls/staged/byte_types.hpp"

#include <cstddef>
#include <limits>
#include <utility>

#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

bool make(std::size_t bytes, MPI_Datatype& made) noexcept {
  if (native.Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &made) != MPI_SUCCESS) return false;
  if (native.Type_commit(&made) == MPI_SUCCESS) return true;
  native.Type_free(&made);
  return false;
}

constinit TypesBySize types(make);

}  // namespace

ByteType::ByteType(layout::Offset bytes) noexcept {
  if (bytes > 0 && bytes <= std::numeric_limits<int>::max()) made_ = types.get(static_cast<std::size_t>(bytes));
}

ByteType::~ByteType() {
  if (made_.is_temporary) native.Type_free(&made_.handle);
}

ByteType::ByteType(ByteType&& other) noexcept : made_(std::exchange(other.made_, {})) {}

ByteType& ByteType::operator=(ByteType&& other) noexcept {
  std::swap(made_, other.made_);
  return *this;
}

void free_byte_types() noexcept { types.free_all(); }

}  // namespace gapless::mpi
