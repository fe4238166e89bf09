// The seed of a program's random tests: GAPLESS_TEST_SEED if set, else fresh. Printed, so that a failure can be
// repeated.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace gapless::tests {

/// The same throughout a process.
inline std::uint64_t random_seed() {
  static const std::uint64_t seed = [] {
    const char* const given = std::getenv("GAPLESS_TEST_SEED");
    const std::uint64_t chosen = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::cout << "GAPLESS_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return seed;
}

}  // namespace gapless::tests
