// A benchmark has nobody to hand an error to: it ends with a message on stderr.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "gapless/gapless.h"

namespace gapless::bench {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "pack: %s\n", what.c_str());
  std::exit(1);
}

inline void check(gapless_status status, const char* what) {
  if (status != GAPLESS_SUCCESS) fail(std::string(what) + ": " + gapless_last_error());
}

}  // namespace gapless::bench
