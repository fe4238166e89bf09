#include "endpoints/errors.hpp"

#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "mpi/table/native.hpp"

namespace gapless::mpi::endpoints {

int code_with_text(int error_class, const char* function, const char* why) noexcept {
  try {
    static std::mutex mutex;
    static auto& codes = *new std::map<std::pair<const char*, const char*>, int>;
    const std::lock_guard lock(mutex);
    const auto [position, is_new] = codes.try_emplace({function, why}, error_class);
    int& code = position->second;
    if (!is_new) return code;
    if (native.Add_error_code(error_class, &code) != MPI_SUCCESS) return code = error_class;
    char text[MPI_MAX_ERROR_STRING];
    std::snprintf(text, sizeof text, "%s: %s", function, why);
    native.Add_error_string(code, text);
    return code;
  } catch (const std::exception&) {
    return error_class;
  }
}

int unserved(const char* function) noexcept {
  return code_with_text(MPI_ERR_UNSUPPORTED_OPERATION, function,
                        "gapless does not serve this call on an endpoints communicator");
}

int bytes_missing() noexcept {
  return code_with_text(MPI_ERR_OTHER, "message", "the endpoint that sends the bytes could not read them");
}

int operand_missing() noexcept {
  return code_with_text(MPI_ERR_OTHER, "reduction", "the operand of another endpoint could not be read");
}

int code_of_freed(const char* function) noexcept {
  return code_with_text(MPI_ERR_COMM, function, "the endpoint's handle has been freed");
}

}  // namespace gapless::mpi::endpoints
