// Errors that gapless's own calls may cause on MPI_COMM_WORLD and MPI_COMM_SELF, and that are not the program's: while
// one of these lives, the communicator returns errors.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// Thread-safe, and several may live at a time: the first puts the program's handler aside, the last one puts it back.
/// Errors that other threads of the program make on the communicator meanwhile are returned, too.
class ErrorsReturned {
 public:
  /// MPI_ERRORS_ARE_FATAL is replaced as other handlers are, or stays.
  enum class Fatal { stays, is_replaced };
  /// `communicator` is MPI_COMM_WORLD or MPI_COMM_SELF.
  ErrorsReturned(MPI_Comm communicator, Fatal fatal) noexcept;
  ~ErrorsReturned();
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  struct Aside;
  static Aside& aside_of(MPI_Comm communicator) noexcept;
  Aside* aside_ = nullptr;  ///< null: the handler has stayed
};

}  // namespace gapless::mpi
