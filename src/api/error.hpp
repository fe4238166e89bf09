// The C boundary: the body of every entry point that returns a status runs inside guard(), so that no exception crosses
// it and each becomes a status with a text for gapless_last_error().
#pragma once

#include <cstddef>

#include "gapless/gapless.h"

namespace gapless::api {

/// Records the text for this thread, and returns `status`. Without memory for a text there is none.
[[gnu::format(printf, 2, 3)]] gapless_status fail(gapless_status status, const char* format, ...) noexcept;

/// Prefixes this thread's last text with "job <number>: " and returns `status`.
gapless_status fail_in_job(gapless_status status, std::size_t number) noexcept;

/// The status of the exception being handled; to be called in a catch block only.
gapless_status fail_with_current_exception() noexcept;

template <class Body>
gapless_status guard(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return fail_with_current_exception();
  }
}

}  // namespace gapless::api
