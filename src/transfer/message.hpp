// The words that all of this layer shares: one side of a message, and how an attempt to move its bytes ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"
#include "layout/algebra/facts.hpp"
#include "layout/datatype/elements.hpp"
#include "layout/layout.hpp"
#include "pack/job.hpp"
#include "transfer/choice/choice_memo.hpp"

namespace gapless::transfer {

/// How one side of a message travels: docs/concepts.md. Each scheme is an object in schemes/. The order counts: first
/// those by the library, then those by a header within a node, then those by a fabric.
enum class Scheme : std::uint8_t {
  native,
  packed,
  oneshot,
  staged,
  pipelined,
  device,
  slots,
  direct,
  fabric_pipelined,
  gather_write,
  scatter_read,
  multi_write
};
inline constexpr std::size_t scheme_count = 12;
const char* name(Scheme scheme) noexcept;

/// What a datatype is, as the MPI layer has found. A description outlives every message that uses the description.
struct Described {
  layout::LayoutPointer layout;
  layout::Facts facts;
  layout::Offset extent = 0;
  bool contiguous_repeats = false;  ///< is any count one contiguous run from offset `layout->base` on?
  layout::ElementsPointer elements{};
  bool has_long_doubles = false;   ///< the MPI library need not move their padding
  bool is_lost_in_pieces = false;  ///< by the MPI library: gapless unpacks what arrives in several pieces
  bool may_be_cut = true;          ///< by the MPI library, which sends packed bytes in pieces
  ChoiceMemo host_choice{};        ///< of choice/choose.cpp
  ChoiceMemo gpu_choice{};         ///< the same in GPU memory
};

/// In the place of a GPU's number: the CPU.
inline constexpr int no_gpu = -1;

struct Buffer {
  const Described* type;
  layout::Offset count;
  void* memory;
  device::Location location;  ///< of the first byte named, not of `memory`, which may be no address at all (MPI_BOTTOM)

  layout::Offset size() const noexcept { return type->layout->size * count; }
  /// The GPU that moves the buffer's bytes; no_gpu where the CPU does.
  int gpu() const noexcept { return location.is_cpu_addressable() ? no_gpu : location.device; }
  /// The job of packed bytes [begin, end), the first of which lies at `packed`.
  pack::Job job(pack::Direction direction, layout::Offset begin, layout::Offset end, void* packed) const noexcept {
    return {type->layout.get(), {count, type->extent}, begin, end, direction, memory, packed};
  }
};

bool is_contiguous(const Buffer& buffer) noexcept;

/// Does the MPI library of this process take addresses in GPU memory? False until the layer above has said so.
bool library_reads_gpu_memory() noexcept;
void set_library_reads_gpu_memory(bool reads) noexcept;

/// The side of a message.
enum class Side : std::uint8_t { sender, receiver };

/// peer_failed: the process at the other end has ended, could not pack, or offers bytes that cannot be reached from
/// here.
enum class Result : std::uint8_t { ok, under_way, out_of_memory, device_failed, peer_failed };

}  // namespace gapless::transfer
