// How one message travels: as the bytes lie, or packed into a contiguous buffer by the engine that fits.
//
// An Outgoing or Incoming is one side of one blocking message. It decides the scheme, owns the packed buffer while the
// message is under way and moves the bytes. It knows nothing of MPI: the caller sends wire_data(), wire_size() bytes of
// it, by any means.
//
//   native   the buffer goes to the MPI library as it is               host memory, contiguous or left to the library
//   packed   host engine into a pooled host buffer                     host memory, noncontiguous
//   oneshot  GPU kernel straight into mapped host memory               Jenkins et al., 2014, section 3
//   staged   GPU kernel into GPU memory, then one copy to the host     both: Pearson et al., 2021, section 5
//
// GPU work is ordered after everything the program has issued to its default stream, and is complete when a function
// returns: MPI has no stream argument, so the default stream is the only one a blocking call can follow.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "device/device.hpp"
#include "layout/facts.hpp"
#include "layout/layout.hpp"
#include "pack/job.hpp"
#include "transfer/buffers.hpp"

namespace gapless::transfer {

enum class Scheme : std::uint8_t { native, packed, oneshot, staged };
inline constexpr std::size_t scheme_count = 4;
const char* name(Scheme scheme) noexcept;

/// What a datatype is, as the MPI layer found it; outlives every message that uses it.
struct Described {
  layout::LayoutPointer layout;
  layout::Facts facts;
  layout::Offset extent = 0;
  layout::Offset element = 0;       ///< bytes of every basic element; 0 where they differ
  bool contiguous_repeats = false;  ///< any count of it is one contiguous run starting at offset `layout->base`
};

struct Buffer {
  const Described* type;
  layout::Offset count;
  void* memory;
  device::Location location;  ///< of the first byte named, not of `memory`, which may be no address at all (MPI_BOTTOM)

  layout::Offset size() const noexcept { return type->layout->size * count; }
};

bool is_contiguous(const Buffer& buffer) noexcept;

enum class Side : std::uint8_t { sender, receiver };

/// The way for a buffer that is not empty, from the machine model or as GAPLESS_SCHEME forces where the memory allows
/// it: a forced scheme for host memory leaves GPU memory as it was, and the other way about.
Scheme choose(const Buffer& buffer, Side side) noexcept;
/// Native or packed for MPI_Pack and MPI_Unpack within host memory, from the model or forced.
Scheme choose_packing(const Buffer& buffer) noexcept;
/// Did GAPLESS_SCHEME, or force_scheme(), say so?
bool is_forced(Scheme scheme) noexcept;
/// Replaces what GAPLESS_SCHEME said. For tests and benchmarks.
void force_scheme(std::optional<Scheme> scheme) noexcept;

enum class Result : std::uint8_t { ok, out_of_memory, device_failed };

/// Packs several messages, those from memory of one GPU in one launch.
class PackBatch {
 public:
  PackBatch() noexcept = default;
  PackBatch(const PackBatch&) = delete;
  PackBatch& operator=(const PackBatch&) = delete;

  /// Packs what has been added. The first failure of any.
  Result run() noexcept;

 private:
  friend class Outgoing;
  static constexpr std::size_t most_jobs = 32;

  void add(const pack::Job& job, int device) noexcept;
  void note(Result result) noexcept {
    if (result_ == Result::ok) result_ = result;
  }

  std::array<pack::Job, most_jobs> jobs_;
  std::size_t count_ = 0;
  int device_ = -1;
  Result result_ = Result::ok;
};

class Outgoing {
 public:
  explicit Outgoing(const Buffer& buffer) noexcept;
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  Scheme scheme() const noexcept { return scheme_; }
  /// Packs. After ok, wire_data() holds wire_size() packed bytes until destruction. Not to be called for native.
  Result prepare() noexcept;
  /// The two parts of it, for messages that are sent again and again: gets the buffer, and packs what the memory holds
  /// now.
  Result reserve() noexcept;
  Result pack() noexcept;
  /// The same, mostly together with what is added to the batch by others: done once that has run.
  void pack_in(PackBatch& batch) noexcept;
  const void* wire_data() const noexcept { return wire_.data(); }
  std::size_t wire_size() const noexcept { return static_cast<std::size_t>(buffer_.size()); }

 private:
  Buffer buffer_;
  Scheme scheme_;
  Wire wire_;
};

class Incoming {
 public:
  explicit Incoming(const Buffer& buffer) noexcept;
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  Scheme scheme() const noexcept { return scheme_; }
  /// Gets the buffer the message is to be received into. Not to be called for native.
  Result prepare() noexcept;
  void* wire_data() noexcept { return wire_.data(); }
  std::size_t wire_size() const noexcept { return static_cast<std::size_t>(buffer_.size()); }
  /// Unpacks the first `received` bytes, and touches no other byte of the user's buffer.
  Result finish(std::size_t received) noexcept;

 private:
  Buffer buffer_;
  Scheme scheme_;
  Wire wire_;
};

/// Packs the whole buffer to `packed`, wherever that is: MPI_Pack. Complete on return.
Result pack(const Buffer& buffer, void* packed, device::Location packed_location) noexcept;
/// Unpacks `buffer.size()` bytes from `packed`: MPI_Unpack.
Result unpack(const Buffer& buffer, const void* packed, device::Location packed_location) noexcept;

}  // namespace gapless::transfer
