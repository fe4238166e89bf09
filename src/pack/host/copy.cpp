// Strided to strided without a packed buffer: one nest with two strides where the layouts refine each other, else the
// merged walk of both.

#include "layout/algebra/refine.hpp"
#include "pack/host/engine.hpp"
#include "pack/host/kernels/kernels.hpp"
#include "pack/host/streaming.hpp"

namespace gapless::pack::host {

void copy_bytes(void* destination, const void* source, std::size_t bytes) noexcept {
  kernels().bytes(static_cast<const char*>(source), static_cast<char*>(destination), static_cast<Offset>(bytes));
}

void copy(const Layout& source, Mode source_outer, const void* source_memory, const Layout& destination,
          Mode destination_outer, void* destination_memory) {
  const char* from = static_cast<const char*>(source_memory);
  char* to = static_cast<char*>(destination_memory);
  const auto common = layout::refine(source, source_outer, destination, destination_outer);
  if (common && common->modes.size() <= static_cast<std::size_t>(max_loops)) {
    if (common->length == 0) return;
    Nest nest;
    nest.length = common->length;
    nest.depth = 0;
    for (const layout::PairedMode& mode : common->modes) {
      nest.loops[nest.depth++] = {mode.count, mode.source_stride, mode.destination_stride};
    }
    from += common->source_base;
    to += common->destination_base;
    const Kernels& table = kernels();
    const bool is_much = source.size * source_outer.count >= streamed_from.load(std::memory_order_relaxed);
    if (table.streamed == nullptr || !is_much || !writes_whole_lines(nest, to)) {
      return table.nest[table_index(nest.length)](nest, from, to);
    }
    table.streamed(nest, from, to);
    return table.end_streams();
  }
  layout::PairCursor cursor(
      layout::Cursor(source, source_outer, 0, source.size * source_outer.count),
      layout::Cursor(destination, destination_outer, 0, destination.size * destination_outer.count));
  for (layout::PairedRun run; cursor.next(run);) {
    kernels().bytes(from + run.source, to + run.destination, run.length);
  }
}

}  // namespace gapless::pack::host
