#include "mpi/calls/files/file_pieces.hpp"

#include <algorithm>
#include <limits>

#include "mpi/calls/files/file_view.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/packing.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::mpi {

using layout::Offset;
using pack::Direction;
using transfer::Result;

namespace {

/// The least length of a piece, where pools are small: shorter pieces would save little memory and cost more calls.
constexpr std::size_t least_piece_bytes = std::size_t{1} << 20;

bool is_atomic(MPI_File file) noexcept {
  int flag = 1;
  return native.File_get_atomicity == nullptr || native.File_get_atomicity(file, &flag) != MPI_SUCCESS || flag != 0;
}

bool may_move_pointer_between_pieces() noexcept {
  return !runtime::is_multithreaded() && native.File_get_position != nullptr && native.File_seek != nullptr;
}

/// Has the file no individual pointer? The library then refuses the call whole, with one error.
bool is_sequential(MPI_File file) noexcept {
  int mode = 0;
  return native.File_get_amode(file, &mode) == MPI_SUCCESS && (mode & MPI_MODE_SEQUENTIAL) != 0;
}

}  // namespace

std::size_t longest_file_piece() noexcept {
  return std::clamp(transfer::pool_limit() / 4, least_piece_bytes, transfer::buffer_memory::longest_of_thread);
}

bool FilePieces::are_due() noexcept {
  const MemoryArgument& argument = access_.argument;
  const auto longest = static_cast<Offset>(longest_file_piece());
  const MPI_Count count = argument.counts[0];
  if (count <= 0 || runtime::size_of(argument.datatype) <= longest / count) return false;
  if (access_.moves_pointer && !may_move_pointer_between_pieces()) return false;
  const FileView view = view_of(access_.file);
  if (view.converts || view.etype_bytes <= 0 || is_atomic(access_.file) || is_sequential(access_.file)) return false;
  user_ = identify(argument.memory, count, argument.datatype, Purpose::message, Analysis::now);
  if (!user_.is_described() || !user_.is_gpu_memory()) return false;
  etype_bytes_ = static_cast<Offset>(view.etype_bytes);
  piece_bytes_ = std::max<Offset>(longest / etype_bytes_, 1) * etype_bytes_;
  const Offset bytes = user_.buffer.size();
  return piece_bytes_ < bytes && bytes % etype_bytes_ == 0 && piece_bytes_ <= std::numeric_limits<int>::max();
}

Result FilePieces::allocate() noexcept {
  const auto bytes = static_cast<std::size_t>(piece_bytes_);
  packed_ = transfer::PoolBuffer(device::MemoryKind::pinned, user_.buffer.location.device, bytes);
  if (!packed_) packed_ = transfer::PoolBuffer(device::MemoryKind::host, -1, bytes);
  return packed_ ? Result::ok : Result::out_of_memory;
}

Result FilePieces::move(Direction direction, Offset begin, Offset end) noexcept {
  return transfer::move_range(direction, user_.buffer, begin, end, packed_.data(), packed_.location());
}

int FilePieces::fail(Result result) const noexcept {
  return raise_on_file(access_.file, transfer_failure(access_.name, result));
}

int FilePieces::run(Function function, const void* call) noexcept {
  if (const Result result = allocate(); result != Result::ok) return fail(result);
  if (access_.moves_pointer) {
    const int code = native.File_get_position(access_.file, &first_position_);
    if (code != MPI_SUCCESS) return code;
  }
  if (access_.status != MPI_STATUS_IGNORE) status_ = *access_.status;
  const int code = move_all(function, call);
  deliver_status();
  // A read has moved its bytes twice, as a read that goes whole does.
  for (int moves = writes() ? 1 : 2; moves > 0; --moves)
    transfer::record(transfer::Scheme::oneshot, static_cast<std::size_t>(moved_));
  return code;
}

int FilePieces::move_all(Function function, const void* call) noexcept {
  const Offset all = user_.buffer.size();
  for (Offset begin = 0; begin < all; begin += piece_bytes_) {
    const Offset end = std::min(all, begin + piece_bytes_);
    // Packs before reads, too: the library may leave bytes behind the end of the file as they are, and still count
    // them.
    if (const Result result = move(Direction::pack, begin, end); result != Result::ok) return fail(result);
    native.Status_set_elements_x(&status_, MPI_BYTE, 0);
    const int code = function(call, {begin / etype_bytes_, packed_.data(), static_cast<int>(end - begin), &status_});
    if (code != MPI_SUCCESS) return code;
    MPI_Count moved = 0;
    native.Get_elements_x(&status_, MPI_BYTE, &moved);
    moved_ += std::clamp<Offset>(moved, 0, end - begin);
    if (!writes()) {
      const Result result = move(Direction::unpack, begin, end);
      if (result != Result::ok) return fail(result);
    }
    if (moved_ < end) return end_early(end);
  }
  return MPI_SUCCESS;
}

/// Ends a call whose piece has moved in part. Open MPI moves the file pointer by the bytes asked for, MPICH by the
/// bytes moved. Where the pointer is past the whole piece, moves it past the rest of the call as well.
int FilePieces::end_early(Offset asked_for) noexcept {
  const Offset rest = user_.buffer.size() - asked_for;
  if (!access_.moves_pointer || rest == 0) return MPI_SUCCESS;
  MPI_Offset position = 0;
  const int code = native.File_get_position(access_.file, &position);
  if (code != MPI_SUCCESS || position != first_position_ + asked_for / etype_bytes_) return code;
  return native.File_seek(access_.file, rest / etype_bytes_, MPI_SEEK_CUR);
}

void FilePieces::deliver_status() noexcept {
  if (access_.status == MPI_STATUS_IGNORE) return;
  native.Status_set_elements_x(&status_, MPI_BYTE, static_cast<MPI_Count>(moved_));
  *access_.status = status_;
}

}  // namespace gapless::mpi
