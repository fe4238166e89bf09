// The library's errors of a call whose result gapless has to know, where the program has an error handler of its own.
#pragma once

#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi {

/// MPICH 5.0.2 returns MPI_SUCCESS from a call that has failed, once the program's error handler has returned. While
/// one of these lives, the object returns its errors; raise() then calls the handler. Does nothing under libraries that
/// say what has happened, for MPI's own handlers, and with several threads, whose errors would be returned, too.
class ErrorsCaught {
 public:
  explicit ErrorsCaught(const ErrorObject& object) noexcept;
  ~ErrorsCaught() { put_back(); }
  ErrorsCaught(const ErrorsCaught&) = delete;
  ErrorsCaught& operator=(const ErrorsCaught&) = delete;

  /// To be called once with what the library has returned. Returns `code`.
  int raise(int code) noexcept;

 private:
  void put_back() noexcept;

  ErrorObject object_;
  MPI_Errhandler handler_{};  ///< the program's
  bool is_aside_ = false;
};

/// Has the object an error handler of the program's own?
bool has_programs_handler(const ErrorObject& object) noexcept;

}  // namespace gapless::mpi
