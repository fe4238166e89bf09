// How a message that has come by header is fetched. The receiver alone decides, by one pure function of what both sides
// say, so that every case is tested without a message.
#pragma once

#include <cstdint>

#include "transfer/headers/header.hpp"

namespace gapless::transfer::headers {

/// What the header says.
struct SenderFacts {
  std::uint64_t bytes = 0;
  WaySet ways;  ///< that it offers
  /// What is exported lies in memory of the host, which CPU and GPU reach.
  bool is_exported_on_host = false;
};

/// The receiver's own side.
struct ReceiverFacts {
  std::uint64_t room = 0;   ///< bytes of the receive
  std::uint64_t whole = 0;  ///< those bytes of the message, if it fits, that are whole elements
  bool is_on_gpu = false;   ///< the CPU cannot address the memory
  WaySet ways;              ///< that this process can go
};

enum class Outcome : std::uint8_t {
  whole,
  partial,    ///< the message ends within an element: what is whole is fetched (MPI_ERR_TYPE)
  truncated,  ///< the message does not fit: nothing is fetched (MPI_ERR_TRUNCATE)
  refused,    ///< there is no way that both sides can go
};

struct Decision {
  Outcome outcome = Outcome::refused;
  WayKind way = WayKind::none;  ///< none: nothing is fetched
  std::uint64_t bytes = 0;      ///< the first so many are fetched
  /// First into the receive's own packed memory, and from there as if they had come packed: where what is offered and
  /// the user's memory are reached by different engines.
  bool goes_by_packed_memory = false;

  friend bool operator==(const Decision&, const Decision&) noexcept = default;
};

/// Whatever is decided, everything that the header offers is released afterwards (Fetch does).
Decision decide(const SenderFacts& sender, const ReceiverFacts& receiver) noexcept;

}  // namespace gapless::transfer::headers
