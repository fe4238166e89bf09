// How one message travels: as the bytes lie, or packed into a contiguous buffer by the engine that fits.
//
// An Outgoing or Incoming is one side of one blocking message. It decides the scheme (scheme.hpp), owns the packed buffer
// while the message is under way and moves the bytes. It knows nothing of MPI: the caller sends wire_data(), wire_size()
// bytes of it, by any means.
//
//   native   the buffer goes to the MPI library as it is               host memory, contiguous or left to the library
//   packed   host engine into a pooled host buffer                     host memory, noncontiguous
//   oneshot  GPU kernel straight into mapped host memory               000 section 3, 002 section 5
//   staged   GPU kernel into GPU memory, then one copy to the host     002 section 5
#pragma once

#include <cstddef>

#include "device/device.hpp"
#include "layout/facts.hpp"
#include "layout/layout.hpp"

namespace gapless::transfer {

enum class Scheme : std::uint8_t { native, packed, oneshot, staged };
const char* name(Scheme scheme) noexcept;

/// What a datatype is, as the MPI layer found it; outlives every message that uses it.
struct Described {
  layout::LayoutPointer layout;
  layout::Facts facts;
  layout::Offset extent = 0;
  bool contiguous_repeats = false;  ///< any count of it is one contiguous run starting at offset `layout->base`
};

struct Buffer {
  const Described* type;
  layout::Offset count;
  void* memory;
  device::Location location;

  layout::Offset size() const noexcept { return type->layout->size * count; }
};

/// The way for a buffer, from the machine model or as GAPLESS_SCHEME forces. Pure but for the model's table.
Scheme choose(const Buffer& buffer) noexcept;

enum class Result : std::uint8_t { ok, out_of_memory, device_failed };

class Wire;  // a pooled contiguous buffer; see buffers.hpp

class Outgoing {
 public:
  explicit Outgoing(const Buffer& buffer) noexcept;
  ~Outgoing();
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  Scheme scheme() const noexcept { return scheme_; }
  /// Packs. After ok, wire_data() holds wire_size() packed bytes until destruction. Not to be called for native.
  Result prepare() noexcept;
  const void* wire_data() const noexcept { return data_; }
  std::size_t wire_size() const noexcept;

 private:
  Buffer buffer_;
  Scheme scheme_;
  void* data_ = nullptr;
};

class Incoming {
 public:
  explicit Incoming(const Buffer& buffer) noexcept;
  ~Incoming();
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  Scheme scheme() const noexcept { return scheme_; }
  /// Gets the buffer the message is to be received into. Not to be called for native.
  Result prepare() noexcept;
  void* wire_data() noexcept { return data_; }
  std::size_t wire_size() const noexcept;
  /// Unpacks the first `received` bytes, and touches no other byte of the user's buffer.
  Result finish(std::size_t received) noexcept;

 private:
  Buffer buffer_;
  Scheme scheme_;
  void* data_ = nullptr;
};

}  // namespace gapless::transfer
