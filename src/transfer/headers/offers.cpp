#include "transfer/headers/offers.hpp"

#include "transfer/choice/choose.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::transfer::headers {
namespace {

Header header_for(const Buffer& buffer, const Inbox& inbox) noexcept {
  return {inbox.speaker().nonce, static_cast<std::uint64_t>(buffer.size()), own_process()};
}

}  // namespace

bool Offers::secure(const Buffer& buffer, Inbox& inbox, const Envelope& envelope, bool may_stay, Later later) noexcept {
  if (inbox.is_remote()) return false;
  header_ = header_for(buffer, inbox);
  const bool is_on_host = buffer.location.is_cpu_addressable();
  if (is_on_host && header_scheme(buffer) == Scheme::slots) return secure_slots(buffer, inbox, envelope);
  const bool is_secured = is_on_host ? may_stay && direct_.secure_from_host(buffer, inbox, header_)
                                     : secure_from_gpu(buffer, inbox, may_stay, later);
  return is_secured && is_still_attentive(inbox.head());
}

bool Offers::secure_from_gpu(const Buffer& buffer, Inbox& inbox, bool may_stay, Later later) noexcept {
  if (may_stay && pull_.secure(buffer, inbox, later.awaited, header_)) return true;
  if (direct_.secure(buffer, inbox, may_stay, later.packed, header_)) return true;
  return may_stay && pull_.secure_put_off(buffer, inbox, later.awaited, header_);
}

bool Offers::secure_slots(const Buffer& buffer, Inbox& inbox, const Envelope& envelope) noexcept {
  if (!slots_.secure(buffer, inbox, header_, envelope)) return false;
  if (is_still_attentive(inbox.head())) return true;
  slots_.withdraw();
  return false;
}

bool Offers::secure_from_host(const Buffer& buffer, Inbox& inbox) noexcept {
  header_ = header_for(buffer, inbox);
  return direct_.secure_from_host(buffer, inbox, header_) && is_still_attentive(inbox.head());
}

bool Offers::secure_fabric(const Buffer& buffer, Inbox& inbox) noexcept {
  header_ = header_for(buffer, inbox);
  if (fabric_.emplace().secure(buffer, inbox, header_)) return true;
  fabric_.reset();
  return false;
}

void Offers::hand_over() noexcept {
  slots_.hand_over();
  direct_.hand_over();
  pull_.hand_over();
  if (fabric_) fabric_->hand_over();
}

bool Offers::is_under_way() noexcept {
  if (fabric_) return fabric_->is_under_way();
  return (pull_.is_there() ? pull_.poll() : rings::poll(*direct_.ring())) == Result::under_way;
}

Result Offers::wait() noexcept {
  if (fabric_) return fabric_->wait();
  return pull_.is_there() ? pull_.wait() : rings::wait(*direct_.ring());
}

Result Offers::complete_alone() noexcept {
  if (fabric_) return fabric_->complete_alone();
  return pull_.is_there() ? pull_.complete_alone() : rings::complete_alone(*direct_.ring());
}

}  // namespace gapless::transfer::headers
