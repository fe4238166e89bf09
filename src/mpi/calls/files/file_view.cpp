#include "mpi/calls/files/file_view.hpp"

#include <string_view>

#include "mpi/datatypes/contents.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

/// A datatype that MPI_File_get_view has given: the caller's, to be freed, unless predefined.
class Given {
 public:
  Given() noexcept = default;
  ~Given() {
    if (handle_ != MPI_DATATYPE_NULL && !is_predefined(handle_)) native.Type_free(&handle_);
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;

  MPI_Datatype* place() noexcept { return &handle_; }
  MPI_Datatype handle() const noexcept { return handle_; }

 private:
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

}  // namespace

FileView view_of(MPI_File file) noexcept {
  if (file == MPI_FILE_NULL || native.File_get_view == nullptr) return {};
  MPI_Offset displacement = 0;
  Given etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING + 1] = "";
  if (native.File_get_view(file, &displacement, etype.place(), filetype.place(), representation) != MPI_SUCCESS)
    return {};
  return {std::string_view(representation) != "native", runtime::size_of(etype.handle())};
}

}  // namespace gapless::mpi
