// From one layout to another without a packed buffer as long as the message: a plain job where one side is one run, one
// nest with two strides where the layouts refine each other, else packed and unpacked in pieces.

#include <algorithm>

#include "layout/algebra/refine.hpp"
#include "pack/host/engine.hpp"
#include "pack/host/kernels/kernels.hpp"
#include "pack/host/streaming.hpp"

namespace gapless::pack::host {

void copy_bytes(void* destination, const void* source, std::size_t bytes) noexcept {
  kernels().bytes(static_cast<const char*>(source), static_cast<char*>(destination), static_cast<Offset>(bytes));
}

namespace {

/// Are the packed bytes of the repeated layout one run in memory?
bool is_one_run(const Layout& layout, Mode outer) noexcept {
  return layout.is_contiguous() && (outer.count == 1 || outer.stride == layout.length);
}

void copy_nest(const layout::PairedStrided& common, bool is_much, const char* from, char* to) {
  Nest nest;
  nest.length = common.length;
  nest.depth = 0;
  for (const layout::PairedMode& mode : common.modes) {
    nest.loops[nest.depth++] = {mode.count, mode.source_stride, mode.destination_stride};
  }
  from += common.source_base;
  to += common.destination_base;
  const Kernels& table = kernels();
  if (table.streamed == nullptr || !is_much || !writes_whole_lines(nest, to)) {
    return table.nest[table_index(nest.length)](nest, from, to);
  }
  table.streamed(nest, from, to);
  table.end_streams();
}

/// Few enough for the first-level cache to hold them between the two jobs.
constexpr Offset piece_bytes = 16384;

void copy_pieces(Job pack, Job unpack) {
  alignas(64) char piece[piece_bytes];
  pack.packed = unpack.packed = piece;
  const Offset size = pack.end;
  for (Offset begin = 0; begin < size; begin += piece_bytes) {
    pack.begin = unpack.begin = begin;
    pack.end = unpack.end = std::min(begin + piece_bytes, size);
    run(pack);
    run(unpack);
  }
}

}  // namespace

void copy(const Layout& source, Mode source_outer, const void* source_memory, const Layout& destination,
          Mode destination_outer, void* destination_memory) {
  const Offset size = source.size * source_outer.count;
  if (size == 0) return;
  char* const from = static_cast<char*>(const_cast<void*>(source_memory));
  char* const to = static_cast<char*>(destination_memory);
  Job pack{&source, source_outer, 0, size, Direction::pack, from, to + destination.base};
  Job unpack{&destination, destination_outer, 0, size, Direction::unpack, to, from + source.base};
  if (is_one_run(source, source_outer)) return run(unpack);
  // A nest may go past the caches, where packing does not.
  const bool is_much = size >= streamed_from.load(std::memory_order_relaxed);
  if (is_one_run(destination, destination_outer) && !(is_much && source.is_strided())) return run(pack);
  const auto common = layout::refine(source, source_outer, destination, destination_outer);
  if (common && common->modes.size() <= static_cast<std::size_t>(max_loops)) {
    return copy_nest(*common, is_much, from, to);
  }
  copy_pieces(pack, unpack);
}

}  // namespace gapless::pack::host
