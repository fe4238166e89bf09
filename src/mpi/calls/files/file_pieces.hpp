// Independent access to a file from much GPU memory, piece by piece through one bounded buffer of host memory.
//
// A call may be made as several where nobody can tell the difference: where the call is blocking, independent and
// nonatomic (MPI 5.0, 14.6.1), no other process waits for the call, or may count on seeing all or nothing of the
// access. A piece is a whole number of etypes, because the library counts offsets and moves its individual file pointer
// in etypes. A piece goes to the library as bytes, which match every etype. The library applies the view, as to any
// access. Calls go whole
// - on files in atomic mode, and on views in which the library converts elements and has to know them,
// - by the shared file pointer, which other processes may move between two pieces,
// - by the individual file pointer, where other threads of the program may move it between two pieces.
#pragma once

#include <cstddef>

#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/table/abi.hpp"
#include "pack/job.hpp"
#include "transfer/buffers/buffers.hpp"

namespace gapless::mpi {

/// The most bytes of a piece, unless a single etype has more: as many as a thread's pools keep for its next call.
/// Follows from GAPLESS_POOL_BYTES.
std::size_t longest_file_piece() noexcept;

/// A call that reads or writes a file, as the program has made it.
struct FileAccess {
  const char* name = "";
  MPI_File file{};
  MemoryArgument argument;
  MPI_Status* status = nullptr;  ///< may be MPI_STATUS_IGNORE
  bool moves_pointer = false;    ///< the individual file pointer says where; else an offset does
};

/// The arguments that the library's function gets in the place of the program's.
struct FilePiece {
  MPI_Offset etypes = 0;  ///< behind the call's offset
  void* memory = nullptr;
  int bytes = 0;  ///< elements of MPI_BYTE
  MPI_Status* status = nullptr;
};

class FilePieces {
 public:
  /// The library's function, with the other arguments from `call`.
  using Function = int (*)(const void* call, const FilePiece& piece);

  explicit FilePieces(const FileAccess& access) noexcept : access_(access) {}

  /// Is the access long enough to go in pieces, and may it go so?
  bool are_due() noexcept;
  /// Makes the call. The status tells of all pieces together; a piece that the library moves in part is the last.
  /// Returns the library's error code, or ours, raised on the file; earlier pieces have moved then. Precondition:
  /// are_due().
  int run(Function function, const void* call) noexcept;

 private:
  bool writes() const noexcept { return is_sent(access_.argument.kind); }
  transfer::Result allocate() noexcept;
  transfer::Result move(pack::Direction direction, layout::Offset begin, layout::Offset end) noexcept;
  int move_all(Function function, const void* call) noexcept;
  int end_early(layout::Offset asked_for) noexcept;
  int fail(transfer::Result result) const noexcept;
  void deliver_status() noexcept;

  FileAccess access_;
  UserBuffer user_;
  layout::Offset etype_bytes_ = 0, piece_bytes_ = 0;
  transfer::PoolBuffer packed_;
  MPI_Status status_{};            ///< of the latest piece
  layout::Offset moved_ = 0;       ///< bytes of all pieces, by the library's word
  MPI_Offset first_position_ = 0;  ///< of the individual file pointer
};

}  // namespace gapless::mpi
