// How a message that has come by header is fetched. The receiver alone decides, by a pure function of facts of both
// sides, so every case is tested without a message.
#pragma once

#include <cstdint>

#include "transfer/headers/header.hpp"

namespace gapless::transfer::headers {

/// What the header says.
struct SenderFacts {
  std::uint64_t bytes = 0;
  WaySet ways;  ///< offered by the header
  /// Exported bytes lie in memory of the host, which CPU and GPU reach.
  bool is_exported_on_host = false;
};

/// The receiver's own side.
struct ReceiverFacts {
  std::uint64_t room = 0;   ///< bytes of the receive
  std::uint64_t whole = 0;  ///< bytes of a message that fits, up to its last whole element
  bool is_on_gpu = false;   ///< the CPU cannot address the memory
  WaySet ways;              ///< that this process can go
};

enum class Outcome : std::uint8_t {
  whole,
  partial,    ///< the message ends within an element: whole elements are fetched (MPI_ERR_TYPE)
  truncated,  ///< the message does not fit: nothing is fetched (MPI_ERR_TRUNCATE)
  refused,    ///< no way is open to both sides
};

struct Decision {
  Outcome outcome = Outcome::refused;
  WayKind way = WayKind::none;  ///< none: nothing is fetched
  std::uint64_t bytes = 0;      ///< the first so many are fetched
  /// The bytes go into the receive's own packed memory first, and from there as if they had come packed: different
  /// engines reach the offered bytes and the user's memory.
  bool goes_by_packed_memory = false;

  friend bool operator==(const Decision&, const Decision&) noexcept = default;
};

/// Whatever is decided, everything that the header offers is released afterwards (Fetch does).
Decision decide(const SenderFacts& sender, const ReceiverFacts& receiver) noexcept;

}  // namespace gapless::transfer::headers
