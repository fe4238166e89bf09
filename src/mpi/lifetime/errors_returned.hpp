// Errors that gapless's own calls may cause on a communicator of the program, and that are not the program's: while one
// of these lives, the communicator returns errors.
#pragma once

#include <mutex>

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// Thread-safe. Of MPI_COMM_WORLD and MPI_COMM_SELF several may live at a time: the first puts the program's handler
/// aside, the last one puts it back. Of any other communicator one may. Errors that other threads of the program make
/// on the communicator meanwhile are returned, too.
class ErrorsReturned {
 public:
  /// MPI_ERRORS_ARE_FATAL is replaced as other handlers are, or stays.
  enum class Fatal { stays, is_replaced };
  ErrorsReturned(MPI_Comm communicator, Fatal fatal) noexcept;
  ~ErrorsReturned();
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  /// What has been put aside for one communicator.
  struct Aside {
    explicit Aside(MPI_Comm whose) noexcept : communicator(whose) {}

    const MPI_Comm communicator;
    std::mutex mutex{};  ///< guards what follows
    int living = 0;
    MPI_Errhandler handler{};  ///< the program's, while any live
  };
  Aside& aside_of(MPI_Comm communicator) noexcept;

  Aside own_;               ///< of a communicator that no others of these know
  Aside* aside_ = nullptr;  ///< null: the handler has stayed
};

}  // namespace gapless::mpi
