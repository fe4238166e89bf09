// The receiver's side of a message that its GPU reads in the sender's memory (pulls/offer.hpp).
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
  /// Moves them, packed, into memory that every GPU of this process and the CPU reach, or the CPU alone. Done on
  /// return.
  Result copy(const headers::Header& header, const PulledWay& way, std::byte* into, std::size_t bytes) noexcept;
  /// The batch has run: the sender's memory is not needed any more.
  void end() noexcept;

 private:
  device::OpenedMemory::Use use_;
  headers::PullWords* words_ = nullptr;
  Source source_;
  schemes::DirectFetch copied_;  ///< where the sender has not waited
};

/// Nothing is fetched: the memory is the sender's alone again.
void release_pulled(const headers::Header& header, const PulledWay& way) noexcept;

}  // namespace gapless::transfer::pulls
