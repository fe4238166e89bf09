// Memory that an argument of a call names, packed into host memory: for calls that are the library's own from beginning
// to end, such as collectives. GPU memory that the library cannot read has to be packed; noncontiguous host memory is
// packed where packing is faster. Noncontiguous GPU memory that the library reads is packed in GPU memory, by one
// launch: libraries move such memory block by block.
//
// An argument is a list of parts (address, count, datatype), one for each process where the call has counts for each.
// Staged parts lie packed one behind the other. The library gets the counts of the program and, where a datatype has
// gaps, a contiguous datatype of the same size: Open MPI's collectives cut a message by count and size, and all ranks
// have to cut alike. An operand of a reduction keeps its datatype, because the operation is called with that datatype.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi/calls/staged/byte_types.hpp"
#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/parts.hpp"

namespace gapless::mpi {

/// What is known of the parts of one argument, entry by entry.
struct StagedParts {
  std::vector<Part> named;  ///< as the program names them
  std::vector<UserBuffer> users;
  std::vector<layout::Offset> offsets;  ///< of the parts' packed bytes
  std::vector<MPI_Datatype> datatypes;  ///< for the library
  std::vector<ByteType> made;           ///< those of `datatypes` that gapless has made
  std::vector<transfer::PackedPart> packed;
  std::vector<std::byte> counts, displacements;  ///< for the library, where not the program's arrays

  void clear() noexcept;
};

class StagedArgument {
 public:
  StagedArgument() noexcept = default;
  ~StagedArgument();
  StagedArgument(const StagedArgument&) = delete;
  StagedArgument& operator=(const StagedArgument&) = delete;

  /// Finds out what the argument's parts are. Throws std::bad_alloc.
  void describe(const CallFacts& call, const MemoryArgument& argument, Analysis analysis);
  /// Decides whether the argument is staged. `meets_contiguous`: as far as is known, the memory at the other end has no
  /// gaps. `is_sent_on`: the library sends on to other processes what it has received there. Throws std::bad_alloc.
  void choose(table::RoleKind kind, const CallFacts& call, bool may_pack_host_memory, bool meets_contiguous,
              bool is_sent_on);
  /// Does the argument have bytes, and no gaps between them?
  bool is_contiguous() const noexcept;
  /// The GPU of memory that the library cannot read; -1 if no part lies in such memory.
  int gpu() const noexcept { return gpu_; }
  bool is_staged() const noexcept { return is_staged_; }
  /// Is there a long part whose packed bytes the library must not cut?
  bool stays_whole() const noexcept { return stays_whole_; }
  /// Is this GPU memory that cannot be staged, because a datatype is opaque?
  bool is_unserved() const noexcept { return gpu_ >= 0 && !is_staged_; }
  /// Does a part in such memory have a datatype that the library does not accept? Not every collective of Open MPI
  /// asks.
  bool has_no_datatype() const noexcept { return has_no_datatype_; }
  void leave_to_library() noexcept { is_staged_ = false; }

  transfer::Result allocate() noexcept;
  /// Packs. After a failure the library gets zeros, unless it reads GPU memory.
  transfer::Result pack() noexcept;
  transfer::Result unpack() noexcept;

  /// The library's address of the first part; part i lies offset(i) bytes behind.
  void* memory() const noexcept;
  /// Do the elements of the only part, whose datatype is kept, follow each other from memory() on?
  bool is_contiguous_from_its_address() const noexcept { return span_ == 0 && first_byte_ == 0; }
  /// One datatype of all elements of the only part, to be given with first_byte(); MPI_DATATYPE_NULL if the library
  /// makes none.
  MPI_Datatype join() noexcept;
  void* first_byte() const noexcept { return span_ > 0 ? spread_.data() : packed_.data(); }
  layout::Offset offset(std::size_t i) const noexcept { return parts_.offsets[i]; }
  std::size_t part_count() const noexcept { return parts_.users.size(); }
  const UserBuffer& part(std::size_t i) const noexcept { return parts_.users[i]; }
  /// Leaves part `i` out of packing and unpacking.
  void leave_out(std::size_t i) noexcept { parts_.packed[i].buffer = nullptr; }
  /// Memory of so many bytes for the library's counts and displacements. Both throw std::bad_alloc.
  std::byte* counts(std::size_t bytes) {
    parts_.counts.resize(bytes);
    return parts_.counts.data();
  }
  std::byte* displacements(std::size_t bytes) {
    parts_.displacements.resize(bytes);
    return parts_.displacements.data();
  }
  /// Makes a datatype of part `i` that says how far the part lies behind the first. False if the library makes none.
  /// Throws std::bad_alloc.
  bool displace(std::size_t i);
  const MPI_Datatype* datatypes() const noexcept { return parts_.datatypes.data(); }
  /// The datatype of all parts, where the program has given one for all: `original`, unless that has gaps.
  /// shared_size() has its bytes.
  MPI_Datatype shared_datatype(MPI_Datatype original) const noexcept {
    return shared_ == nowhere ? original : parts_.datatypes[shared_];
  }
  layout::Offset shared_size() const noexcept {
    return shared_ == nowhere ? 1 : parts_.users[shared_].buffer.type->layout->size;
  }

 private:
  static constexpr auto nowhere = static_cast<std::size_t>(-1);

  void describe(const Part& part, const Integers& counts, Analysis analysis, bool library_reads_gpu);
  bool is_worth_packing(const CallFacts& call, bool meets_contiguous) const noexcept;
  bool changes_extent() const noexcept;
  bool choose_datatypes(bool keep);
  void measure_span() noexcept;
  transfer::Buffer spread() const noexcept;
  transfer::Result move(pack::Direction direction) noexcept;
  void clear() noexcept;

  StagedParts parts_;
  std::size_t shared_ = nowhere;  ///< the first described part
  layout::Offset bytes_ = 0;
  layout::Offset first_byte_ = 0;  ///< of a datatype that is kept: where its first byte lies
  layout::Offset span_ = 0;        ///< bytes from there to the last, if it has gaps
  transfer::PoolBuffer packed_;
  transfer::PoolBuffer spread_;  ///< elements of a datatype that is kept, with its gaps
  MPI_Datatype joined_ = MPI_DATATYPE_NULL;
  device::Location location_;
  int gpu_ = -1;
  int gpu_of_library_ = -1;   ///< of all parts, where the library reads GPU memory
  bool is_described_ = true;  ///< are all parts that are not empty described?
  bool is_opaque_ = false;    ///< is some datatype opaque?
  bool has_no_datatype_ = false;
  bool stays_whole_ = false;  ///< a long part whose packed bytes the library must not cut
  bool loses_end_ = false;    ///< a part that the library would not move whole from a process to itself
  bool is_staged_ = false;
};

}  // namespace gapless::mpi
