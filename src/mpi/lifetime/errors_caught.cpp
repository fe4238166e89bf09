#include "mpi/lifetime/errors_caught.hpp"

#include <utility>

#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

/// Calls the member of `Native` that is for the kind of the object. False where the library refuses, or without an
/// object.
template <auto of_communicator, auto of_window, auto of_file, class Argument>
bool call(const ErrorObject& object, Argument argument) noexcept {
  switch (object.kind) {
    case ErrorObject::Kind::communicator:
      return (native.*of_communicator)(object.communicator, argument) == MPI_SUCCESS;
    case ErrorObject::Kind::window:
      return (native.*of_window)(object.window, argument) == MPI_SUCCESS;
    case ErrorObject::Kind::file:
      return (native.*of_file)(object.file, argument) == MPI_SUCCESS;
    case ErrorObject::Kind::none:
    case ErrorObject::Kind::returning:
      break;
  }
  return false;
}

bool get_handler(const ErrorObject& object, MPI_Errhandler& handler) noexcept {
  return call<&Native::Comm_get_errhandler, &Native::Win_get_errhandler, &Native::File_get_errhandler>(object,
                                                                                                       &handler);
}

bool set_handler(const ErrorObject& object, MPI_Errhandler handler) noexcept {
  return call<&Native::Comm_set_errhandler, &Native::Win_set_errhandler, &Native::File_set_errhandler>(object, handler);
}

/// MPI_ERRORS_ABORT may be taken for the program's: it ends the process in raise().
bool is_the_programs(MPI_Errhandler handler) noexcept {
  return handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN;
}

}  // namespace

bool has_programs_handler(const ErrorObject& object) noexcept {
  MPI_Errhandler handler;
  if (!get_handler(object, handler)) return false;
  const bool result = is_the_programs(handler);
  native.Errhandler_free(&handler);
  return result;
}

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
