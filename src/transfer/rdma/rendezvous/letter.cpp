#include "transfer/rdma/rendezvous/letter.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include "transfer/rdma/memory/description.hpp"

namespace gapless::transfer::rdma {
namespace {

/// A letter's beginning. The address follows, and a description, if any.
struct Head {
  Reply reply;
  layout::Mode outer{1, 0};
  std::uint64_t layout = 0;  ///< the layout's number; 0: the sender needs none
  std::uint64_t oldest_layout = 0;
  std::uint32_t address_bytes = 0;
  std::uint32_t description_bytes = 0;
  bool is_declined = false;
};
static_assert(std::is_trivially_copyable_v<Head> && sizeof(Head) + most_address_bytes < mailbox_bytes / 2);

/// An entry of a list takes at least 8 bytes of a description, so a long list is refused without its description.
bool is_surely_too_long(const layout::Layout& layout) noexcept {
  return layout.offsets.size() * sizeof(layout::Offset) > mailbox_bytes;
}

}  // namespace

LayoutNumbers::Number LayoutNumbers::number_of(const layout::LayoutPointer& layout) {
  const auto found = numbers_.find(layout);
  if (found != numbers_.end()) return {found->second, oldest_};
  if (numbers_.size() == most) {
    numbers_.clear();
    oldest_ = std::exchange(oldest_of_these_, next_);
  }
  numbers_.emplace(layout, next_);
  return {next_++, oldest_};
}

bool fits_in_letter(const layout::LayoutPointer& layout, std::size_t address_bytes, LayoutNumbers& numbers,
                    const KnownLayouts& known) noexcept try {
  if (known.told.contains(numbers.number_of(layout).number)) return true;
  if (is_surely_too_long(*layout)) return false;
  return describe(*layout).size() <= mailbox_bytes - sizeof(Head) - address_bytes;
} catch (const std::exception&) {
  return false;
}

WrittenLetter write_letter(std::span<std::byte, mailbox_bytes> mailbox, const Reply& reply, const Memory* memory,
                           std::span<const std::byte> address, LayoutNumbers& numbers, KnownLayouts& known) noexcept
    try {
  Head head;
  head.reply = reply;
  head.address_bytes = static_cast<std::uint32_t>(address.size());
  head.is_declined = memory == nullptr;
  std::byte* at = mailbox.data() + sizeof head;
  at = std::copy(address.begin(), address.end(), at);
  if (memory != nullptr && reply.scheme == Scheme::multi_write) {
    const auto [number, oldest] = numbers.number_of(memory->layout);
    head.outer = memory->outer;
    head.layout = number;
    head.oldest_layout = oldest;
    known.told.erase(known.told.begin(), known.told.lower_bound(oldest));
    if (!known.told.contains(number)) {
      const std::vector<std::byte> description = describe(*memory->layout);
      if (description.size() > static_cast<std::size_t>(mailbox.data() + mailbox.size() - at)) return {};
      head.description_bytes = static_cast<std::uint32_t>(description.size());
      at = std::copy(description.begin(), description.end(), at);
    }
  }
  std::memcpy(mailbox.data(), &head, sizeof head);
  return {static_cast<std::size_t>(at - mailbox.data()), head.layout};
} catch (const std::exception&) {
  return {};
}

bool read_letter(std::span<const std::byte, mailbox_bytes> mailbox, Letter& letter, KnownLayouts& known) noexcept try {
  Head head;
  std::memcpy(&head, mailbox.data(), sizeof head);
  const auto rest = mailbox.subspan(sizeof head);
  if (head.address_bytes > rest.size() || head.description_bytes > rest.size() - head.address_bytes) return false;
  letter.reply = head.reply;
  letter.is_declined = head.is_declined;
  letter.outer = head.outer;
  letter.address = rest.first(head.address_bytes);
  letter.layout.reset();
  if (head.layout == 0) return true;
  known.theirs.erase(known.theirs.begin(), known.theirs.lower_bound(head.oldest_layout));
  if (head.description_bytes != 0) {
    letter.layout = understand(rest.subspan(head.address_bytes, head.description_bytes));
    if (letter.layout == nullptr) return false;
    known.theirs.insert_or_assign(head.layout, letter.layout);
    return true;
  }
  const auto found = known.theirs.find(head.layout);
  if (found == known.theirs.end()) return false;
  letter.layout = found->second;
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace gapless::transfer::rdma
