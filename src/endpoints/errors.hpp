// Errors of endpoints: codes with text, raised through the handler of the endpoint's own handle.
#pragma once

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

/// The error code of class `error_class` with the text "<function>: <why>", not yet raised. Codes are kept, one for
/// each pair: both must be literals.
int code_with_text(int error_class, const char* function, const char* why) noexcept;

/// The same for a call that endpoints do not serve.
int unserved(const char* function) noexcept;

/// The same for a call on an endpoint's handle that was freed.
int code_of_freed(const char* function) noexcept;

}  // namespace gapless::mpi::endpoints
