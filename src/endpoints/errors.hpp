// Errors of endpoints: codes with text, raised through the handler of the endpoint's own handle.
#pragma once

#include <exception>

#include "mpi/lifetime/errors.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

/// The error code of class `error_class` with the text "<function>: <why>", not yet raised. Codes are kept, one for
/// each pair: both must be literals.
int code_with_text(int error_class, const char* function, const char* why) noexcept;

/// The error code of a call that endpoints do not serve, not yet raised.
int unserved(const char* function) noexcept;

/// The error code of a message whose sender could not read the bytes, not yet raised.
int bytes_missing() noexcept;

/// The error code of a reduction to which another endpoint could give no operand, not yet raised.
int operand_missing() noexcept;

/// The error code of a call on an endpoint's handle that was freed, not yet raised.
int code_of_freed(const char* function) noexcept;

/// The code of `step()`, not yet raised; MPI_ERR_NO_MEM where memory ends there. For steps that others wait for.
template <class Step>
int code_of(Step step) noexcept {
  try {
    return step();
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

/// The result of `call()`. Where memory ends there, MPI_ERR_NO_MEM is raised without an object.
template <class Call>
int guarded(Call call) noexcept {
  try {
    return call();
  } catch (const std::exception&) {
    return raise_without_object(MPI_ERR_NO_MEM);
  }
}

}  // namespace gapless::mpi::endpoints
