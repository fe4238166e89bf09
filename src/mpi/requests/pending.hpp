// A nonblocking message of ours: the program's handle is the library's own request, and at its completion something is
// left to be done here: to unpack what arrived, to let go of a packed buffer.
#pragma once

#include <memory>
#include <variant>

#include "mpi/calls/side.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/work.hpp"

namespace gapless::mpi::requests {

class Pending {
 public:
  template <class Side, class... Arguments>
  Side& make(Arguments&&... arguments) noexcept {
    return side_.template emplace<Side>(std::forward<Arguments>(arguments)...);
  }
  /// Lets go of packed buffers. Nothing is pending here any more.
  void clear() noexcept {
    side_.emplace<std::monostate>();
    beyond_communicator = {};
  }

  /// The library has completed the request with that status: unpacks a message that arrived, once, and gives the
  /// program its status. MPI_SUCCESS, or the error that is to be raised. `shared_` lets the next call do no more than
  /// deliver.
  int finish(ReceivedStatus& status) noexcept;
  /// Where errors go.
  ErrorObject error_object() const noexcept {
    const bool is_communicator = beyond_communicator.kind == ErrorObject::Kind::none;
    return is_communicator ? ErrorObject::of_communicator(communicator) : beyond_communicator;
  }
  /// The program starts the persistent request: packs what it sends. MPI_SUCCESS, or the error that is to be raised.
  int start() noexcept;
  int raise(int code) const noexcept { return raise_on(error_object(), code); }

  MPI_Request handle{};             ///< the key
  const char* function = "";        ///< that started it, for error texts
  MPI_Comm communicator{};          ///< errors go to; MPI_COMM_NULL: to no object's handler, unless there is
  ErrorObject beyond_communicator;  ///< a window or file
  bool is_persistent = false;       ///< the request stays when it is complete, and may be started again
  bool is_claimed = false;          ///< a call is completing the request
  bool is_unpacked = false;         ///< a call that completes nothing has seen the message arrive
  Pending* next = nullptr;          ///< in its list

 private:
  std::variant<std::monostate, Sending<int>, Receiving<int>, Sending<MPI_Count>, Receiving<MPI_Count>,
               std::unique_ptr<Work>>
      side_;
};

}  // namespace gapless::mpi::requests
