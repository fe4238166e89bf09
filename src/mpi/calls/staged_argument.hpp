// GPU memory that an argument of a call names, staged through host memory: for calls that are the library's own from
// beginning to end, such as collectives, on libraries that cannot read GPU memory.
//
// An argument is a list of parts (address, count, datatype), one for each process where the call has counts for each.
// Staged, the parts lie packed one behind the other. The library is given the counts of the program and, where a
// datatype has gaps, a contiguous one of the same size: Open MPI's collectives cut a message by count and size, and all
// ranks have to cut alike.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi/calls/user_buffer.hpp"
#include "transfer/buffers.hpp"

namespace gapless::mpi {

struct Part {
  const void* memory;
  MPI_Count count;
  MPI_Datatype datatype;
};

class StagedArgument {
 public:
  StagedArgument() noexcept = default;
  ~StagedArgument();
  StagedArgument(const StagedArgument&) = delete;
  StagedArgument& operator=(const StagedArgument&) = delete;

  /// False if a datatype is not understood, or `keep_datatypes` and one has gaps: then nothing can be staged. Throws
  /// std::bad_alloc.
  bool describe(const std::vector<Part>& parts, bool keep_datatypes);
  bool is_staged() const noexcept { return is_staged_; }

  transfer::Result allocate(int gpu) noexcept;
  transfer::Result pack() noexcept { return move(true); }
  transfer::Result unpack() noexcept { return move(false); }

  /// What the library is given for the first part; part i lies offset(i) bytes behind it.
  void* memory() const noexcept;
  layout::Offset offset(std::size_t i) const noexcept { return offsets_[i]; }
  std::size_t part_count() const noexcept { return users_.size(); }
  const MPI_Datatype* datatypes() const noexcept { return datatypes_.data(); }
  /// That of all parts, where the program gave one for all: `original`.
  MPI_Datatype shared_datatype(MPI_Datatype original) const noexcept {
    return made_.empty() ? original : made_.front();
  }

 private:
  transfer::Result move(bool pack) noexcept;
  bool add_datatype(const UserBuffer& user, const Part& part, bool keep);

  std::vector<UserBuffer> users_;
  std::vector<layout::Offset> offsets_;
  std::vector<MPI_Datatype> datatypes_;
  std::vector<MPI_Datatype> made_;
  MPI_Datatype made_for_{};  ///< what the last of them stands for
  layout::Offset bytes_ = 0;
  layout::Offset base_ = 0;  ///< where the first byte of a kept datatype lies
  transfer::PoolBuffer packed_;
  device::Location location_;
  bool is_staged_ = false;
};

}  // namespace gapless::mpi
