#include "transfer/headers/offers.hpp"

#include <unistd.h>

#include "transfer/choice/choose.hpp"

namespace gapless::transfer::headers {

bool Offers::secure(const Buffer& buffer, Inbox& inbox, const Envelope& envelope) noexcept {
  header_ = Header(inbox.head().nonce, static_cast<std::uint64_t>(buffer.size()), ::getpid());
  if (buffer.location.is_cpu_addressable()) return slots_.secure(buffer, inbox, header_, envelope);
  return is_forced(Scheme::direct) && direct_.secure(buffer, inbox, header_);
}

bool Offers::secure_fabric(const Buffer& buffer, Inbox& inbox) noexcept {
  header_ = Header(inbox.head().nonce, static_cast<std::uint64_t>(buffer.size()), ::getpid());
  if (fabric_.emplace().secure(buffer, inbox, header_)) return true;
  fabric_.reset();
  return false;
}

void Offers::release() noexcept {
  slots_.release();
  direct_.release();
  if (fabric_) fabric_->release();
}

}  // namespace gapless::transfer::headers
