// What survivors of a killed process do, in runs of their own (killed_peer.sh --survivor).
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/environment.hpp"

namespace gapless::test {

/// Who is to die in this run; empty: nobody.
inline std::string_view who_dies() {
  const char* who = std::getenv("GAPLESS_TEST_WHO_DIES");
  return who == nullptr ? "" : who;
}

/// The error of a message whose other end has died.
inline void expect_peer_failure(int code) {
  EXPECT_EQ(MPI_ERR_OTHER, error_class(code));
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  EXPECT_NE(std::string_view::npos, std::string_view(text).find("has ended")) << text;
}

/// Says so to killed_peer.sh, and ends the process where the library would wait for the dead one.
[[noreturn]] inline void survive() {
  const char* path = std::getenv("GAPLESS_TEST_SURVIVOR");
  std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file != nullptr) {
    std::fputs("survived", file);
    std::fclose(file);
  }
  ::_exit(0);
}

}  // namespace gapless::test
