#include "transfer/headers/offers.hpp"

#include <unistd.h>

namespace gapless::transfer::headers {

bool Offers::secure(const Buffer& buffer, Inbox& inbox) noexcept {
  header_ = Header(inbox.head().nonce, static_cast<std::uint64_t>(buffer.size()), ::getpid());
  return buffer.location.is_cpu_addressable() && slots_.secure(buffer, inbox, header_);
}

}  // namespace gapless::transfer::headers
