// Which regime runs a job: one function of a few numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "layout/layout.hpp"
#include "pack/gpu/regimes/regime.hpp"

namespace gapless::pack::gpu {

using layout::Offset;

/// What a layout is to kernels.
enum class ShapeKind : std::uint8_t { contiguous, nest, segments, tree };

/// What a regime is chosen from.
struct Numbers {
  ShapeKind kind = ShapeKind::nest;
  bool unpack = false;
  bool injective = true;  ///< counts for unpacking alone
  int word_shift = 0;     ///< log2 of the widest word that addresses, lengths, distances and positions allow, at most 4
  int row_alignment_shift = 0;  ///< log2 of what every row's address is a multiple of, at most 5
  bool fits_32_bits = true;     ///< words, counts and strides; the regimes for rows and tiles need it
  bool rows_fit_32_bits = true;
  Offset bytes = 0;          ///< of the job
  bool whole_words = false;  ///< the range begins and ends at whole words
  Offset row_distance = 0;   ///< nest: bytes of memory from one row to the next, roughly
  Offset row_length = 0;     ///< nest: bytes
  // Nest: the mode that runs across the packed order in small steps, if there is one.
  int across_mode = 0;
  Offset inner_count = 0;  ///< of the innermost mode
  Offset inner_stride = 0;
  Offset across_count = 0;
  Offset across_stride = 0;
};

/// Postcondition: can_run(result, numbers). `forced` is taken if it can run.
Regime choose_regime(const Numbers& numbers, std::optional<Regime> forced = {}) noexcept;

/// Is every row one whole sector, in a line of its own?
bool has_lone_sectors(const Numbers& numbers) noexcept;

/// Is the regime right for such a job, fast or not?
bool can_run(Regime regime, const Numbers& numbers) noexcept;

}  // namespace gapless::pack::gpu
