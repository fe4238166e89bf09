// What every offer of this process's memory to a peer's GPU needs: words that say who may go on with it, and whether
// the memory can be read from there at all.
#pragma once

#include <chrono>
#include <cstdint>

#include "device/runtime.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer::pulls {

/// Words of this process's inbox that nobody uses, and their number there; null where there are none. Thread-safe.
headers::PullWords* take_words(std::uint32_t& number) noexcept;
/// The offer goes on no more. The words are given again once their state is `free` or `done`.
void leave_words(headers::PullWords* words) noexcept;

/// Is one pass from where the buffer lies as good as packing it first? Short blocks far apart reach a link's speed only
/// once they are packed. Not where GAPLESS_PULL forbids it.
bool may_be_pulled(const Buffer& buffer) noexcept;
/// Does all of the buffer lie in that allocation?
bool is_within(const Buffer& buffer, const device::MemoryHandle& allocation) noexcept;

/// Whether the process of an inbox is there, which is asked now and then while one waits for it.
class ReceiverWatch {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(Clock::time_point now) noexcept { looked_ = now; }
  bool is_there(const headers::Inbox& inbox, Clock::time_point now) noexcept;

 private:
  Clock::time_point looked_{};
};

}  // namespace gapless::transfer::pulls
