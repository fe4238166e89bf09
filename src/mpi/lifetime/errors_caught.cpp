#include "mpi/lifetime/errors_caught.hpp"

#include <utility>

#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

bool get_handler(const ErrorObject& object, MPI_Errhandler& handler) noexcept {
  switch (object.kind) {
    case ErrorObject::Kind::communicator:
      return native.Comm_get_errhandler(object.communicator, &handler) == MPI_SUCCESS;
    case ErrorObject::Kind::window:
      return native.Win_get_errhandler(object.window, &handler) == MPI_SUCCESS;
    case ErrorObject::Kind::file:
      return native.File_get_errhandler(object.file, &handler) == MPI_SUCCESS;
    case ErrorObject::Kind::none:
      break;
  }
  return false;
}

bool set_handler(const ErrorObject& object, MPI_Errhandler handler) noexcept {
  switch (object.kind) {
    case ErrorObject::Kind::communicator:
      return native.Comm_set_errhandler(object.communicator, handler) == MPI_SUCCESS;
    case ErrorObject::Kind::window:
      return native.Win_set_errhandler(object.window, handler) == MPI_SUCCESS;
    case ErrorObject::Kind::file:
      return native.File_set_errhandler(object.file, handler) == MPI_SUCCESS;
    case ErrorObject::Kind::none:
      break;
  }
  return false;
}

/// MPI_ERRORS_ABORT may be taken for the program's: it ends the process in raise().
bool is_the_programs(MPI_Errhandler handler) noexcept {
  return handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN;
}

}  // namespace

ErrorsCaught::ErrorsCaught(const ErrorObject& object) noexcept : object_(object) {
  if (library_returns_errors_after_handlers || runtime::is_multithreaded() || !get_handler(object, handler_)) return;
  is_aside_ = is_the_programs(handler_) && set_handler(object, MPI_ERRORS_RETURN);
  if (!is_aside_) native.Errhandler_free(&handler_);
}

void ErrorsCaught::put_back() noexcept {
  if (!std::exchange(is_aside_, false)) return;
  set_handler(object_, handler_);
  native.Errhandler_free(&handler_);
}

int ErrorsCaught::raise(int code) noexcept {
  const bool is_to_be_told = is_aside_ && code != MPI_SUCCESS;
  put_back();
  return is_to_be_told ? raise_on(object_, code) : code;
}

}  // namespace gapless::mpi
