// What every offer of this process's memory to a peer's GPU needs: words that say whose turn the offer is, and whether
// the peer's GPU can read the memory at all.
#pragma once

#include <chrono>
#include <cstdint>

#include "device/runtime.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer::pulls {

/// Takes words of this process's inbox that no offer uses, and tells their number there. Null where all are used.
/// Thread-safe.
headers::PullWords* take_words(std::uint32_t& number) noexcept;
/// Ends the use of the words by an offer. take_words() gives them again once their state is `free` or `done`.
void leave_words(headers::PullWords* words) noexcept;

/// Can a peer's GPU read the buffer in one pass, as fast as packed bytes? Short blocks far apart reach a link's speed
/// only once they are packed. False for layouts that are not strided, and where GAPLESS_PULL forbids pulls.
bool may_be_pulled(const Buffer& buffer) noexcept;
/// Does the whole buffer lie in the allocation?
bool is_within(const Buffer& buffer, const device::MemoryHandle& allocation) noexcept;

/// Asks now and then whether the process of an inbox still runs, for a sender that waits for that process.
class ReceiverWatch {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(Clock::time_point now) noexcept { looked_ = now; }
  bool is_there(const headers::Inbox& inbox, Clock::time_point now) noexcept;

 private:
  Clock::time_point looked_{};
};

}  // namespace gapless::transfer::pulls
