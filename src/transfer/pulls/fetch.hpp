// The receiver's side of a message that the receiver's GPU reads in the sender's memory (transfer/pulls/offer.hpp).
#pragma once

#include <cstddef>

#include "device/opened_memory.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/operation.hpp"
#include "transfer/pulls/offer.hpp"
#include "transfer/pulls/source.hpp"
#include "transfer/schemes/direct.hpp"

namespace gapless::transfer::pulls {

/// One message.
class PullFetch {
 public:
  PullFetch() noexcept = default;
  ~PullFetch() { end(); }
  PullFetch(const PullFetch&) = delete;
  PullFetch& operator=(const PullFetch&) = delete;

  /// Has the batch move the first `bytes` bytes into GPU memory.
  Result begin(const headers::Header& header, const PulledWay& way, const Buffer& into, std::size_t bytes,
               Batch& batch) noexcept;
  /// Moves the first `bytes` bytes, packed, into memory that the CPU reaches, page-locked or not. Done on return.
  Result copy(const headers::Header& header, const PulledWay& way, std::byte* into, std::size_t bytes) noexcept;
  /// The batch has run: the sender's memory is not needed any more.
  void end() noexcept;

 private:
  device::OpenedMemory::Use use_;
  headers::PullWords* words_ = nullptr;
  Source source_;
  schemes::DirectFetch copied_;  ///< for a message that the sender has copied out
};

/// Fetches nothing, and gives the memory back to the sender.
void release_pulled(const headers::Header& header, const PulledWay& way) noexcept;

}  // namespace gapless::transfer::pulls
