// A file that all processes of a test have opened.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/environment.hpp"

namespace gapless::test {

/// A file of all processes, with errors returned, that is gone afterwards.
class File {
 public:
  explicit File(MPI_Comm processes = MPI_COMM_WORLD) : processes_(processes) {
    char name[] = "/tmp/gapless-files-XXXXXX";
    if (rank(processes_) == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, processes_);
    EXPECT_EQ(MPI_SUCCESS,
              MPI_File_open(processes_, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &handle_));
    name_ = name;
  }
  ~File() {
    MPI_Barrier(processes_);
    MPI_File_close(&handle_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  operator MPI_File() const { return handle_; }
  const std::string& name() const { return name_; }

  /// Of ints, one behind the other.
  void view_as(const char* representation) const {
    EXPECT_EQ(MPI_SUCCESS, MPI_File_set_view(handle_, 0, MPI_INT, MPI_INT, representation, MPI_INFO_NULL));
  }

  /// What all processes have written, as the library reads it.
  std::vector<std::byte> bytes() const {
    MPI_File_sync(handle_);
    MPI_Barrier(processes_);
    MPI_Offset size = 0;
    MPI_File_get_size(handle_, &size);
    std::vector<std::byte> all(static_cast<std::size_t>(size));
    EXPECT_EQ(MPI_SUCCESS, GAPLESS_TEST_NATIVE(File_read_at)(handle_, 0, all.data(), static_cast<int>(size), MPI_BYTE,
                                                             MPI_STATUS_IGNORE));
    MPI_Barrier(processes_);
    return all;
  }

 private:
  MPI_Comm processes_;
  MPI_File handle_;
  std::string name_;
};

}  // namespace gapless::test
