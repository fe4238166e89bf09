// Datatypes for packed bytes that no count of MPI_PACKED names: split ones, and more bytes than an int counts.
#include "mpi/calls/sides/packed_type.hpp"

#include "model/model.hpp"
#include "mpi/lifetime/nodes.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

constinit TypesBySize split_types([](std::size_t bytes, MPI_Datatype& made) noexcept {
  return make_of_chunks(MPI_PACKED, bytes, true, made);
});

}  // namespace

bool is_split(std::size_t bytes, transfer::Side side) noexcept {
  if (!library_overruns_contiguous_receives || bytes < 2) return false;
  if (side == transfer::Side::receiver) return true;
  // Networks send long contiguous messages without a copy. Short messages are split all the same: a short message of a
  // process to itself that is too long for its receive would go unnoticed.
  return static_cast<double>(bytes) <= model::profile().host.eager_bytes || is_job_on_one_node();
}

bool is_in_one_piece_if_contiguous(std::size_t bytes) noexcept {
  constexpr std::size_t longest_piece = 32 << 10;  // btl_sm_max_send_size
  return static_cast<double>(bytes) > model::profile().host.eager_bytes && bytes <= longest_piece;
}

MadeType make_packed_type(std::size_t bytes, bool split) noexcept {
  if (split) return split_types.get(bytes);
  MadeType made;
  made.is_usable = made.is_temporary = make_of_chunks(MPI_PACKED, bytes, false, made.handle);
  return made;
}

void free_packed_type(MadeType& type) noexcept { native.Type_free(&type.handle); }

void free_split_types() noexcept { split_types.free_all(); }

}  // namespace gapless::mpi
