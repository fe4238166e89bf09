#include "transfer/headers/attention.hpp"

namespace gapless::transfer::headers {

constinit std::atomic<InboxHead*> internal::own_head{nullptr};
constinit std::atomic<std::uint32_t> internal::unattended{0};

void internal::give_attention(InboxHead& own) noexcept {
  if (unattended.load(std::memory_order_seq_cst) != 0) return;
  own.is_attentive.store(true, std::memory_order_release);
}

}  // namespace gapless::transfer::headers
