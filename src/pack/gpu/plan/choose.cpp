#include "pack/gpu/plan/choose.hpp"

#include "model/gpu.hpp"
#include "pack/gpu/plan/shape.hpp"
#include "pack/gpu/regimes/interleaved.hpp"

namespace gapless::pack::gpu {
namespace {

constexpr const model::GpuTuning& tuning = model::gpu_tuning;

bool is_transposed(const Numbers& n) {
  return can_run(Regime::transpose, n) && n.inner_count >= tuning.fewest_across &&
         n.across_count >= tuning.fewest_across && magnitude(n.across_stride) < tuning.line_bytes &&
         magnitude(n.inner_stride) >= tuning.line_bytes;
}

/// Do sectors hold elements of several planes, each of which the job has whole?
bool is_interleaved(const Numbers& n) {
  return can_run(Regime::interleaved, n) && magnitude(n.across_stride) < tuning.sector_bytes &&
         n.bytes >= n.inner_count * n.across_count * n.row_length;
}

/// Are sectors written in part that could be written whole, or fetched ahead?
bool has_split_sectors(const Numbers& n) {
  return n.row_length > tuning.sector_bytes &&
         (n.row_length % tuning.sector_bytes != 0 || (1 << n.row_alignment_shift) < tuning.sector_bytes);
}

/// Three words of a row, each row in lines of its own.
bool is_far_triple(const Numbers& n) {
  return n.row_length == Offset{3} << n.word_shift && n.row_distance >= tuning.line_bytes &&
         can_run(Regime::sectors, n);
}

Regime choose_for_nest(const Numbers& n) {
  if (n.bytes < tuning.small_job) return Regime::nest;
  if (is_transposed(n)) return Regime::transpose;
  if (is_interleaved(n)) return Regime::interleaved;
  const bool is_odd = n.word_shift < tuning.fast_word_shift && n.row_length >= tuning.shortest_shifted_row;
  if (n.unpack) {
    if (!can_run(Regime::sectors, n)) return Regime::nest;
    const bool is_many = n.bytes >= tuning.many_rows * n.row_length;
    const bool gains = is_odd || (is_many && (has_split_sectors(n) || has_lone_sectors(n)));
    return gains ? Regime::sectors : Regime::nest;
  }
  if (is_odd && can_run(Regime::shifted, n)) return Regime::shifted;
  return is_far_triple(n) ? Regime::sectors : Regime::nest;
}

}  // namespace

bool has_lone_sectors(const Numbers& n) noexcept {
  return n.row_length == tuning.sector_bytes && (1 << n.row_alignment_shift) >= tuning.sector_bytes &&
         n.row_distance >= tuning.line_bytes;
}

bool can_run(Regime regime, const Numbers& n) noexcept {
  if (n.unpack && !n.injective) return regime == Regime::ordered;
  const bool is_nest = n.kind == ShapeKind::nest;
  switch (regime) {
    case Regime::contiguous:
      return n.kind == ShapeKind::contiguous;
    case Regime::nest:
      return is_nest;
    case Regime::shifted:
      return is_nest && !n.unpack && n.rows_fit_32_bits;
    case Regime::sectors:
      return is_nest && n.rows_fit_32_bits && (n.unpack || (n.whole_words && n.word_shift >= tuning.fast_word_shift));
    case Regime::transpose:
      return is_nest && n.fits_32_bits && n.across_count > 0 && n.row_length == Offset{1} << n.word_shift;
    case Regime::interleaved:
      return can_run(Regime::transpose, n) && n.across_count <= most_fields;
    case Regime::segments:
      return n.kind == ShapeKind::segments;
    case Regime::tree:
      return n.kind == ShapeKind::tree;
    case Regime::ordered:
      return false;
  }
  return false;
}

Regime choose_regime(const Numbers& n, std::optional<Regime> forced) noexcept {
  if (n.unpack && !n.injective) return Regime::ordered;
  if (forced && can_run(*forced, n)) return *forced;
  switch (n.kind) {
    case ShapeKind::contiguous:
      return Regime::contiguous;
    case ShapeKind::segments:
      return Regime::segments;
    case ShapeKind::tree:
      return Regime::tree;
    case ShapeKind::nest:
      break;
  }
  return choose_for_nest(n);
}

}  // namespace gapless::pack::gpu
