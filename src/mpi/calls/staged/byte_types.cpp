#include "mpi/calls/staged/byte_types.hpp"

#include <cstddef>
#include <limits>
#include <utility>

#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

bool make(std::size_t bytes, MPI_Datatype& made) noexcept {
  if (bytes > std::size_t{std::numeric_limits<int>::max()}) return make_of_chunks(MPI_BYTE, bytes, false, made);
  return native.Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &made) == MPI_SUCCESS && commit(made);
}

constinit TypesBySize types(make);

}  // namespace

ByteType::ByteType(layout::Offset bytes) noexcept {
  if (bytes > 0) made_ = types.get(static_cast<std::size_t>(bytes));
}

ByteType ByteType::displaced(MPI_Datatype datatype, layout::Offset bytes) noexcept {
  constexpr int one = 1;
  const auto place = static_cast<MPI_Aint>(bytes);
  ByteType result;
  MadeType& made = result.made_;
  const bool is_made = native.Type_create_struct(1, &one, &place, &datatype, &made.handle) == MPI_SUCCESS;
  made.is_usable = made.is_temporary = is_made && commit(made.handle);
  return result;
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
