#include "mpi/lifetime/errors_returned.hpp"

#include "mpi/table/native.hpp"

namespace gapless::mpi {

// Never destroyed: communicators are used while the process ends.
ErrorsReturned::Aside& ErrorsReturned::aside_of(MPI_Comm communicator) noexcept {
  static Aside& world = *new Aside(MPI_COMM_WORLD);
  static Aside& self = *new Aside(MPI_COMM_SELF);
  if (communicator == MPI_COMM_WORLD) return world;
  return communicator == MPI_COMM_SELF ? self : own_;
}

ErrorsReturned::ErrorsReturned(MPI_Comm communicator, Fatal fatal) noexcept : own_(communicator) {
  Aside& aside = aside_of(communicator);
  const std::lock_guard lock(aside.mutex);
  if (aside.living == 0) {
    if (native.Comm_get_errhandler(communicator, &aside.handler) != MPI_SUCCESS) return;
    if (fatal == Fatal::stays && aside.handler == MPI_ERRORS_ARE_FATAL) return;
    native.Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  }
  ++aside.living;
  aside_ = &aside;
}

ErrorsReturned::~ErrorsReturned() {
  if (aside_ == nullptr) return;
  const std::lock_guard lock(aside_->mutex);
  if (--aside_->living != 0) return;
  native.Comm_set_errhandler(aside_->communicator, aside_->handler);
  native.Errhandler_free(&aside_->handler);
}

}  // namespace gapless::mpi
