// What a receiver writes into a sender's mailbox: its reply, its address, and, where the sender needs the layout
// (multi-write), its layout. A layout is described once to each peer, and named by a number from then on (Wu et al.,
// 2003, 5.4.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "transfer/rdma/information.hpp"
#include "transfer/rdma/memory/user_memory.hpp"

namespace gapless::transfer::rdma {

/// Providers with longer addresses are not used: an address has to go into a header.
inline constexpr std::size_t most_address_bytes = 128;

/// This process's layouts that peers have been told of. Numbers are never given again: a layout that is forgotten gets
/// another number when it comes again.
class LayoutNumbers {
 public:
  struct Number {
    std::uint64_t number;
    std::uint64_t oldest;  ///< layouts with smaller numbers are forgotten
  };
  /// Throws std::bad_alloc.
  Number number_of(const layout::LayoutPointer& layout);

 private:
  static constexpr std::size_t most = 256;
  std::map<layout::LayoutPointer, std::uint64_t> numbers_;
  std::uint64_t next_ = 1, oldest_of_these_ = 1;
  std::uint64_t oldest_ = 1;  ///< the first of the list before: letters that name its layouts may be on their way
};

/// What two processes know of each other's layouts.
struct KnownLayouts {
  std::set<std::uint64_t> told;                           ///< this process's layouts that the peer has read
  std::map<std::uint64_t, layout::LayoutPointer> theirs;  ///< the peer's layouts that this process has read
};

/// What a letter says.
struct Letter {
  Reply reply;
  bool is_declined = false;
  layout::LayoutPointer layout;
  layout::Mode outer{1, 0};
  std::span<const std::byte> address;
};

/// Can a letter tell the peer of the layout: does the peer know the layout, or is its description short enough?
bool fits_in_letter(const layout::LayoutPointer& layout, std::size_t address_bytes, LayoutNumbers& numbers,
                    const KnownLayouts& known) noexcept;

/// A letter that has been written.
struct WrittenLetter {
  std::size_t bytes = 0;     ///< 0: there is no memory for the letter
  std::uint64_t layout = 0;  ///< the number of the layout that the letter tells of; 0 without one
};

/// Writes a letter into a mailbox. `memory` is the receiver's; a declined message has none. The letter describes the
/// layout unless the peer is known to have read an earlier description: a letter may overtake the one before it.
WrittenLetter write_letter(std::span<std::byte, mailbox_bytes> mailbox, const Reply& reply, const Memory* memory,
                           std::span<const std::byte> address, LayoutNumbers& numbers, KnownLayouts& known) noexcept;

/// False if the bytes are no letter, or there is no memory.
bool read_letter(std::span<const std::byte, mailbox_bytes> mailbox, Letter& letter, KnownLayouts& known) noexcept;

}  // namespace gapless::transfer::rdma
