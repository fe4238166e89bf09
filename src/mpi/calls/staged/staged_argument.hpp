// Memory that an argument of a call names, packed into host memory: for calls that are the library's own from beginning
// to end, such as collectives. GPU memory that the library cannot read is packed of necessity, noncontiguous host
// memory where that is faster. Noncontiguous GPU memory that the library does read is packed in GPU memory, by one
// launch: libraries move such memory block by block.
//
// An argument is a list of parts (address, count, datatype), one for each process where the call has counts for each.
// Staged, the parts lie packed one behind the other. The library is given the counts of the program and, where a
// datatype has gaps, a contiguous one of the same size: Open MPI's collectives cut a message by count and size, and all
// ranks have to cut alike. An operand of a reduction keeps its datatype, which the operation is called with.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi/calls/staged/byte_types.hpp"
#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/parts.hpp"

namespace gapless::mpi {

class StagedArgument {
 public:
  /// Finds out what `parts` are. Throws std::bad_alloc.
  void describe(const std::vector<Part>& parts, Analysis analysis);
  /// Decides whether they are to be staged; `meets_contiguous`: the memory at the other end has no gaps, as far as is
  /// known. Throws std::bad_alloc.
  void choose(table::Kind kind, bool keep_datatypes, bool may_pack_host_memory, bool meets_contiguous);
  /// Are there bytes, and no gaps among them?
  bool is_contiguous() const noexcept;
  /// -1 if no part is GPU memory that the library cannot read.
  int gpu() const noexcept { return gpu_; }
  bool is_staged() const noexcept { return is_staged_; }
  /// GPU memory that cannot be staged: its datatype is not understood.
  bool is_unserved() const noexcept { return gpu_ >= 0 && !is_staged_; }
  void leave_to_library() noexcept { is_staged_ = false; }

  transfer::Result allocate() noexcept;
  transfer::Result pack() noexcept;
  transfer::Result unpack() noexcept;

  /// What the library is given for the first part; part i lies offset(i) bytes behind it.
  void* memory() const noexcept;
  layout::Offset offset(std::size_t i) const noexcept { return offsets_[i]; }
  std::size_t part_count() const noexcept { return users_.size(); }
  const UserBuffer& part(std::size_t i) const noexcept { return users_[i]; }
  /// Someone else moves that part.
  void leave_out(std::size_t i) noexcept { parts_[i].buffer = nullptr; }
  const MPI_Datatype* datatypes() const noexcept { return datatypes_.data(); }
  /// That of all parts, where the program gave one for all, and its bytes: `original`, unless it has gaps.
  MPI_Datatype shared_datatype(MPI_Datatype original) const noexcept {
    return shared_ == nowhere ? original : datatypes_[shared_];
  }
  layout::Offset shared_size() const noexcept {
    return shared_ == nowhere ? 1 : users_[shared_].buffer.type->layout->size;
  }

 private:
  static constexpr auto nowhere = static_cast<std::size_t>(-1);

  bool is_worth_packing(bool meets_contiguous) const noexcept;
  bool choose_datatypes(bool keep);
  void measure_span() noexcept;
  transfer::Buffer spread() const noexcept;
  transfer::Result move(pack::Direction direction) noexcept;

  std::vector<UserBuffer> users_;
  std::vector<layout::Offset> offsets_;
  std::vector<MPI_Datatype> datatypes_;
  std::vector<ByteType> made_;
  std::vector<transfer::PackedPart> parts_;
  std::size_t shared_ = nowhere;  ///< the first part that anything moves of
  layout::Offset bytes_ = 0;
  layout::Offset first_byte_ = 0;  ///< of a datatype that is kept: where the first byte named lies
  layout::Offset span_ = 0;        ///< bytes from there to the last, if it has gaps
  transfer::PoolBuffer packed_;
  transfer::PoolBuffer spread_;  ///< operands of a datatype that is kept, with its gaps
  device::Location location_;
  int gpu_ = -1;
  int gpu_of_library_ = -1;   ///< that of all parts, where the library reads it
  bool is_described_ = true;  ///< all that counts anything
  bool is_opaque_ = false;    ///< some datatype is not understood
  bool stays_whole_ = false;  ///< a long part whose packed bytes the library must not cut
  bool is_staged_ = false;
};

}  // namespace gapless::mpi
