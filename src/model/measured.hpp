// What `gapless calibrate` has measured, in the form that predictions are made from: for each kind of memory and of
// pair the schemes that a message can go by, each as T = start + pack + move + unpack, or as whole messages.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "model/table.hpp"

namespace gapless::model {

/// Where the bytes of a message lie.
enum class Memory : std::uint8_t { host, gpu };
inline constexpr std::array memory_names = {"host", "gpu"};

/// How close two processes that exchange messages are.
enum class Pair : std::uint8_t { same_gpu, peer_gpu, same_node, other_node };
inline constexpr std::array pair_names = {"same GPU", "peer GPU", "same node", "other node"};

/// The time of a scheme that is not measured.
inline constexpr double never_ns = std::numeric_limits<double>::infinity();

/// The costs of one scheme. Of `native`, pack and unpack are those of MPI_Pack and MPI_Unpack.
struct SchemeCosts {
  double start_ns = 0;
  std::optional<Table> pack, unpack;
  std::optional<Table> move;     ///< of contiguous bytes
  std::optional<Table> message;  ///< of the whole: measured where it can be, for stages overlap and share caches

  bool is_known() const noexcept { return message || (pack && move && unpack); }
  /// From the call of the sender to the last byte at the receiver, in nanoseconds.
  double message_ns(const Shape& shape) const noexcept;
};

/// By the number of a scheme in its list; the list is transfer's.
inline constexpr std::size_t most_schemes = 16, native_scheme = 0, packed_scheme = 1, slots_scheme = 6,
                             direct_scheme = 7;
using CostsByScheme = std::array<SchemeCosts, most_schemes>;

struct Measured {
  std::string source;   ///< the file
  std::string library;  ///< that it is of
  std::array<std::array<CostsByScheme, pair_names.size()>, memory_names.size()> costs;

  const CostsByScheme& of(Memory memory, Pair pair) const noexcept {
    return costs[static_cast<std::size_t>(memory)][static_cast<std::size_t>(pair)];
  }
};

}  // namespace gapless::model
