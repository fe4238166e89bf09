// The status of a receive into packed bytes, and how many bytes it says have arrived.
#pragma once

#include <cstddef>
#include <limits>

#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// Assigns all but the error, which only calls that complete several requests set (MPI 4.1, 3.2.5).
inline void assign_but_error(MPI_Status& to, const MPI_Status& from) noexcept {
  const int error = to.MPI_ERROR;
  to = from;
  to.MPI_ERROR = error;
}

/// Stands in for the program's status, so that a call that does not set its status is noticed: once an error handler of
/// the program has returned, MPICH returns MPI_SUCCESS without having received anything.
class ReceivedStatus {
 public:
  /// `wanted`: the program's, which may be MPI_STATUS_IGNORE.
  explicit ReceivedStatus(MPI_Status* wanted) noexcept : wanted_(wanted == MPI_STATUS_IGNORE ? nullptr : wanted) {
    own_ = unset(wanted_);
  }
  /// A status that the library has filled in already, or has left as unset() made it.
  ReceivedStatus(const MPI_Status& filled, MPI_Status* wanted) noexcept : own_(filled), wanted_(wanted) {}

  MPI_Status* get() noexcept { return &own_; }
  /// A copy of the program's status, which may be null, without a source.
  static MPI_Status unset(const MPI_Status* wanted) noexcept {
    MPI_Status status{};
    if (wanted != nullptr) status = *wanted;
    status.MPI_SOURCE = nobody;
    return status;
  }

  bool is_set() const noexcept { return own_.MPI_SOURCE != nobody; }
  int source() const noexcept { return own_.MPI_SOURCE; }

  /// Bytes received, by the library's word: a truncated message may count whole.
  std::size_t bytes() const noexcept;
  bool is_cancelled() const noexcept;
  void set_bytes(std::size_t bytes) noexcept;
  /// Takes a status that the library has set elsewhere.
  void take(const MPI_Status& filled) noexcept { assign_but_error(own_, filled); }
  void set_envelope(int source, int tag) noexcept {
    own_.MPI_SOURCE = source;
    own_.MPI_TAG = tag;
  }

  /// Gives the program what the library has set. (Of a send MPICH sets nothing but whether the send has been
  /// cancelled.)
  void deliver() const noexcept {
    if (wanted_ == nullptr) return;
    const int before = wanted_->MPI_SOURCE;
    *wanted_ = own_;
    if (!is_set()) wanted_->MPI_SOURCE = before;
  }

 private:
  static constexpr int nobody = std::numeric_limits<int>::min();

  MPI_Status own_{};
  MPI_Status* wanted_;
};

}  // namespace gapless::mpi
