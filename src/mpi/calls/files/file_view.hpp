// What staged file access asks the library about a file's view (MPI 5.0, 14.3).
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

struct FileView {
  /// The library converts elements between memory and file ("external32"), so it has to know the elements.
  bool converts = false;
  /// Bytes of an etype, in which offsets count; 0 if the library does not say.
  MPI_Count etype_bytes = 0;
};

/// The view that the calling process has of the file. MPI_FILE_NULL, and a file whose view the library does not tell,
/// give a view that converts nothing and has no etype. Thread-safe.
FileView view_of(MPI_File file) noexcept;

}  // namespace gapless::mpi
