// What tests of exchanges by messages share: which way an exchange has gone, and what its parts hold.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/statistics.hpp"

namespace gapless::test {

inline constexpr int none = -1;

inline std::uint64_t by_messages() { return count_by("gapless_exchanges_by_messages"); }

/// Has every rank gapless, and somebody to send to?
inline bool may_go_by_messages() {
  return under_gapless() && std::getenv("GAPLESS_ALL_RANKS") != nullptr && size() > 1;
}

/// Do all exchanges that may go by messages go by them, and are not tried both ways?
inline bool is_model_fixed() {
  const char* const model = std::getenv("GAPLESS_MODEL");
  return model != nullptr && std::string_view(model) == "fixed";
}

/// Do parts go combined, in a run where peers may map memory, once they have?
inline bool may_be_combined() {
  const char *scheme = std::getenv("GAPLESS_SCHEME"), *setting = std::getenv("GAPLESS_PULL");
  return may_go_by_messages() && is_model_fixed() && (scheme == nullptr || std::string_view(scheme) == "direct") &&
         (setting == nullptr || std::string_view(setting) != "0") &&
         std::getenv("GAPLESS_TEST_SIMULATED_FAIL") == nullptr && !library_reads_gpu();
}
/// Exchanges after which peers have mapped what they are told of.
inline constexpr int rounds_before = 8;

/// Descriptions that have been received, and parts of them that have been copied.
inline std::uint64_t combined() { return counted("gapless_combined_received"); }
inline std::uint64_t combined_parts() { return counted("gapless_combined_parts"); }

/// A number for the part that goes from one rank to another by the `edge`-th way between the two.
inline int first_of(int from, int to, int edge, int round) { return ((from * 64 + to) * 8 + edge) * 100000 + round; }

}  // namespace gapless::test
