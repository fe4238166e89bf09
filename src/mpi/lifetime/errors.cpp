// One error code per function and cause, added to the library when it first happens; its text is renewed each time.
#include "mpi/lifetime/errors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

constinit thread_local std::uint64_t raised = 0;

enum class Cause { unserved, elsewhere, out_of_memory, device_failed, truncated, peer_failed };

int class_of(Cause cause) noexcept {
  if (cause == Cause::truncated) return MPI_ERR_TRUNCATE;
  return cause == Cause::out_of_memory ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

// Never destroyed: calls may fail while the process ends.
struct Codes {
  std::mutex mutex;  ///< guards the codes
  std::map<std::pair<std::string, Cause>, int> all;
};
Codes& codes() {
  static auto& instance = *new Codes;
  return instance;
}

int code_for(const char* function, Cause cause, const char* text) noexcept {
  const int error_class = class_of(cause);
  try {
    const std::lock_guard lock(codes().mutex);
    const auto [position, is_new] = codes().all.try_emplace({function, cause}, error_class);
    int& code = position->second;
    if (is_new && native.Add_error_code(error_class, &code) != MPI_SUCCESS) code = error_class;
    // MPI forbids renaming its own codes.
    if (code != error_class) native.Add_error_string(code, text);
    return code;
  } catch (const std::exception&) {
    return error_class;
  }
}

}  // namespace

int class_of(int code) noexcept {
  int error_class = code;
  if (code != MPI_SUCCESS) native.Error_class(code, &error_class);
  return error_class;
}

bool is_mistake_of_call(int code) noexcept {
  constexpr std::array mistakes{MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TAG,
                                MPI_ERR_COMM,   MPI_ERR_RANK,  MPI_ERR_ARG};
  return std::ranges::find(mistakes, class_of(code)) != mistakes.end();
}

int unserved_gpu_memory(const char* function, int device) noexcept {
  char text[MPI_MAX_ERROR_STRING];
  std::snprintf(
      text, sizeof text,
      "%s: a buffer is memory of GPU %d, which this MPI library cannot read, and gapless does not support GPU "
      "memory in this call yet",
      function, device);
  return code_for(function, Cause::unserved, text);
}

int refused_elsewhere(const char* function) noexcept {
  char text[MPI_MAX_ERROR_STRING];
  std::snprintf(text, sizeof text,
                "%s: the buffer of another process is memory of a GPU, which this MPI library cannot read, and gapless "
                "does not support GPU memory in this call yet",
                function);
  return code_for(function, Cause::elsewhere, text);
}

int truncated_message() noexcept {
  return code_for("", Cause::truncated, "a message is longer than what it is received into");
}

int peer_failure() noexcept {
  return code_for("", Cause::peer_failed,
                  "the process at the other end of a message has ended, or its bytes cannot be reached");
}

namespace {

/// Why the GPU's part of gapless has failed, or is not there.
std::string reason_of_gpu() {
  device::Runtime* const runtime = device::runtime();
  return runtime == nullptr ? device::why_unavailable() : std::string(runtime->last_error());
}

}  // namespace

int transfer_failure(const char* function, transfer::Result result) noexcept {
  if (result == transfer::Result::peer_failed) return peer_failure();
  const bool no_memory = result == transfer::Result::out_of_memory;
  const char* const what = no_memory ? "no memory for packed bytes" : "GPU data could not be moved";
  char text[MPI_MAX_ERROR_STRING];
  try {
    const std::string why = device::has_met_gpu_memory() ? ": " + reason_of_gpu() : std::string();
    std::snprintf(text, sizeof text, "%s: %s%s", function, what, why.c_str());
  } catch (const std::exception&) {
    std::snprintf(text, sizeof text, "%s: %s", function, what);
  }
  return code_for(function, no_memory ? Cause::out_of_memory : Cause::device_failed, text);
}

void forget_error_codes() noexcept {
  try {
    const std::lock_guard lock(codes().mutex);
    codes().all.clear();
  } catch (const std::exception&) {
  }
}

std::uint64_t errors_raised() noexcept { return raised; }

int raise_on_communicator(MPI_Comm communicator, int code) noexcept {
  ++raised;
  native.Comm_call_errhandler(communicator, code);
  return code;
}

int raise_on_window(MPI_Win window, int code) noexcept {
  native.Win_call_errhandler(window, code);
  return code;
}

int raise_on_file(MPI_File file, int code) noexcept {
  native.File_call_errhandler(file, code);
  return code;
}

int raise_on(const ErrorObject& object, int code) noexcept {
  switch (object.kind) {
    case ErrorObject::Kind::communicator:
      return raise_on_communicator(object.communicator, code);
    case ErrorObject::Kind::window:
      return raise_on_window(object.window, code);
    case ErrorObject::Kind::file:
      return raise_on_file(object.file, code);
    case ErrorObject::Kind::returning:
      return code;
    case ErrorObject::Kind::none:
      break;
  }
  return raise_without_object(code);
}

MPI_Comm told_of_no_communicator() noexcept {
  MPI_Errhandler handler{};
  const bool is_known = native.Comm_get_errhandler(MPI_COMM_SELF, &handler) == MPI_SUCCESS;
  if (!is_known || handler == MPI_ERRORS_ARE_FATAL) return MPI_COMM_WORLD;
  native.Errhandler_free(&handler);
  return MPI_COMM_SELF;
}

ErrorObject error_object_without(MPI_Comm communicator) noexcept {
  MPI_Errhandler handler{};
  if (native.Comm_get_errhandler(communicator, &handler) != MPI_SUCCESS) return {};
  const bool returns = handler == MPI_ERRORS_RETURN;
  native.Errhandler_free(&handler);
  return returns ? ErrorObject::that_returns() : ErrorObject();
}

constinit thread_local const MPI_Comm* self_of_thread = nullptr;

int raise_without_object(int code) noexcept {
  const MPI_Comm* const self = self_of_thread;
  return raise_on_communicator(self != nullptr ? *self : runtime::communicator_for_errors(), code);
}

}  // namespace gapless::mpi
