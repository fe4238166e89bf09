// The seed of a random test: printed, so that a failure can be had again by setting GAPLESS_TEST_SEED.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace gapless::tests {

inline std::uint64_t test_seed() {
  const char* wanted = std::getenv("GAPLESS_TEST_SEED");
  const std::uint64_t seed = wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device{}();
  std::cout << "GAPLESS_TEST_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace gapless::tests
