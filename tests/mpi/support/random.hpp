// Random numbers whose seed is printed with every failure and accepted from the environment.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace gapless::test {

/// GAPLESS_TEST_SEED, or a fixed default: ranks must agree on it without a message.
inline std::uint64_t seed() {
  const char* text = std::getenv("GAPLESS_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 0) : 20100401;
}

/// How often a random test repeats: GAPLESS_TEST_ITERATIONS, or the default given.
inline int iterations(int otherwise) {
  const char* text = std::getenv("GAPLESS_TEST_ITERATIONS");
  return text ? std::atoi(text) : otherwise;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Uniform in [low, high]. Not std::uniform_int_distribution, whose results differ between standard libraries.
  int between(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(int n) { return between(1, n) == 1; }
  std::uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace gapless::test
