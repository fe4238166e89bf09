// Errors of this layer become MPI errors: an error code with text, raised through the handler of the call's own object,
// so that a program sees what it would see of its library. All other errors are the library's own.
#pragma once

#include <cstdint>

#include "mpi/table/abi.hpp"
#include "transfer/message.hpp"

namespace gapless::mpi {

/// The error code, not yet raised, for GPU memory on `device` that neither the library nor this layer serves in
/// `function`.
int unserved_gpu_memory(const char* function, int device) noexcept;

/// The error code, not yet raised, of a collective call that another process has to refuse for that reason.
int refused_elsewhere(const char* function) noexcept;

/// The error code, not yet raised, for a message that came by header and is too long.
int truncated_message() noexcept;

/// The error code, not yet raised, for a message by header whose other process has ended, or whose bytes cannot be
/// reached.
int peer_failure() noexcept;

/// The error code, not yet raised, for data that could not be moved in `function`: the message cannot be got
/// from the other process (see above), there is no memory, or the GPU failed. Precondition: result != ok.
int transfer_failure(const char* function, transfer::Result result) noexcept;

/// The library may end, and its error codes with it: where it begins again, with another session, codes are made anew.
void forget_error_codes() noexcept;

/// The error class of a code. Other processes do not know this one's codes.
int class_of(int code) noexcept;
/// Is that the error of a call with a wrong argument, which libraries find before they send anything?
bool is_mistake_of_call(int code) noexcept;

/// What has the error handler for a call: a communicator, window or file, or nothing; or a communicator that the
/// program has freed, and that had MPI_ERRORS_RETURN.
struct ErrorObject {
  enum class Kind : std::uint8_t { none, communicator, window, file, returning };

  ErrorObject() noexcept = default;
  static ErrorObject of_communicator(MPI_Comm handle) noexcept {
    ErrorObject result;
    if (handle == MPI_COMM_NULL) return result;
    result.kind = Kind::communicator;
    result.communicator = handle;
    return result;
  }
  static ErrorObject that_returns() noexcept {
    ErrorObject result;
    result.kind = Kind::returning;
    return result;
  }
  static ErrorObject of_window(MPI_Win handle) noexcept {
    ErrorObject result;
    result.kind = Kind::window;
    result.window = handle;
    return result;
  }
  static ErrorObject of_file(MPI_File handle) noexcept {
    ErrorObject result;
    result.kind = Kind::file;
    result.file = handle;
    return result;
  }

  Kind kind = Kind::none;
  MPI_Comm communicator{};
  MPI_Win window{};
  MPI_File file{};
};

// Each calls the error handler of its object and returns `code`, as the failing call does.
int raise_on(const ErrorObject& object, int code) noexcept;
int raise_on_communicator(MPI_Comm communicator, int code) noexcept;
int raise_on_window(MPI_Win window, int code) noexcept;
int raise_on_file(MPI_File file, int code) noexcept;
/// Where this thread's errors go that are no communicator's, window's or file's; null: where those of the process go.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const MPI_Comm* self_of_thread;
/// For calls without a communicator, window or file (MPI 5.0, 9.3).
int raise_without_object(int code) noexcept;

/// Whose handler MPICH 5.0.2 calls where it knows of no communicator: MPI_COMM_SELF's if the program has set one, else
/// MPI_COMM_WORLD's.
MPI_Comm told_of_no_communicator() noexcept;

/// What errors go to once the communicator is freed. The library keeps the communicator's handler for the requests that
/// are left. gapless keeps no handler but MPI_ERRORS_RETURN.
ErrorObject error_object_without(MPI_Comm communicator) noexcept;

/// A mark in the place of a code: the library has called the error handler already, which must not be called again, and
/// may have returned MPI_SUCCESS, as MPICH does once the handler has returned. Programs that get the mark most often
/// have had a message that is too long.
inline constexpr int raised_already = MPI_ERR_TRUNCATE;

/// How often this thread has called the error handler of a communicator.
std::uint64_t errors_raised() noexcept;

}  // namespace gapless::mpi
