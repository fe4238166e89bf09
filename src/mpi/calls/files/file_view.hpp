// What staged file access asks the library about a file's view (MPI 5.0, 14.3).
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

struct FileView {
  /// The library converts elements between memory and file ("external32"), so it has to be told which elements they
  /// are.
  bool converts = false;
  /// Bytes of an etype, in which offsets count; 0 if the library does not say.
  MPI_Count etype_bytes = 0;
};

/// The view that the calling process has of the file. That of MPI_FILE_NULL, whose access the library refuses, and a
/// view that the library does not tell convert nothing and have no etype. Thread-safe.
FileView view_of(MPI_File file) noexcept;

}  // namespace gapless::mpi
