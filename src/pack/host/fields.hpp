// The fields of a repeated record: an array of structs is packed two fields at a time, or one that is a strided nest,
// instead of interpreting the record once per repetition. Records are done in tiles whose memory and packed bytes both
// stay in the first-level cache, so every line still travels once.
#pragma once

#include "layout/layout.hpp"
#include "pack/host/kernels/kernels.hpp"
#include "pack/host/plan.hpp"

namespace gapless::pack::host {

/// Repetitions from which fields beat interpreting the record.
inline constexpr Offset fields_from = 4;
inline constexpr int max_fields = 32;

struct Fields {
  int count = 0;
  Offset tile = 0;  ///< records per tile
  Field field[max_fields];

  /// False if the record is not a short list of strided fields, or if visiting them field by field could change which
  /// of two overlapping writes stays.
  bool collect(const Layout& record, const Level& level, Dense dense) noexcept;

  /// Has no field modes of its own?
  bool are_plain() const noexcept;

  /// The nest that moves one field of `records` records.
  Nest nest(const Field& field, Offset records, const Level& level, Dense dense) const noexcept;

  /// Fields `first` and `first` + 1 of `records` records. Precondition: both can be paired.
  Pair pair(int first, Offset records, const Level& level, Dense dense) const noexcept;

 private:
  bool add(Offset memory, Offset packed, const Layout& strided) noexcept;
  bool are_disjoint(const Level& level) const noexcept;
};

}  // namespace gapless::pack::host
