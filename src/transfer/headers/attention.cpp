#include "transfer/headers/attention.hpp"

#include <mutex>

#include "transfer/headers/exported/introductions.hpp"

namespace gapless::transfer::headers {

constinit std::atomic<InboxHead*> internal::own_head{nullptr};
constinit std::atomic<std::uint32_t> internal::unattended{0};
constinit std::atomic<std::int32_t> internal::looks_left{most_looks};

namespace {

constinit bool is_given_for_good = false;
constinit std::mutex changing;  ///< guards what give_attention() and take_attention_back() read and write

/// Can this process fetch from senders' memory? Then attention is not taken back: only a sender knows whether a message
/// in its memory is on its way.
bool can_fetch_from_senders() noexcept { return accepting_device() >= 0 || has_accepted_pages(); }

}  // namespace

void internal::give_attention(InboxHead& own) noexcept {
  const std::scoped_lock lock(changing);
  if (!own.is_called.load(std::memory_order_seq_cst) || unattended.load(std::memory_order_seq_cst) != 0) return;
  own.is_attentive.store(true, std::memory_order_release);
}

void internal::take_attention_back(InboxHead& own) noexcept {
  looks_left.store(most_looks, std::memory_order_relaxed);
  const std::scoped_lock lock(changing);
  if (is_given_for_good || can_fetch_from_senders() || !is_attentive(own)) return;
  own.is_attentive.store(false, std::memory_order_seq_cst);
  // Another thread may have accepted a sender's memory meanwhile.
  if (own.free_slots.load(std::memory_order_seq_cst) != all_slots || can_fetch_from_senders()) {
    own.is_attentive.store(true, std::memory_order_release);
  } else {
    own.is_called.store(false, std::memory_order_seq_cst);
  }
}

void give_attention_for_good(InboxHead& own) noexcept {
  is_given_for_good = true;
  own.is_called.store(true, std::memory_order_relaxed);
  own.is_attentive.store(true, std::memory_order_relaxed);
}

}  // namespace gapless::transfer::headers
