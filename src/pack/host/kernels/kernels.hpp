// The copy loops, compiled once per instruction set. kernels.cpp sees plain numbers and pointers only: an inline
// function of a header compiled there with wider instructions must never be the copy the linker keeps for everyone.
#pragma once

#include <atomic>

#include "pack/host/nest.hpp"

namespace gapless::layout {
struct Layout;
}

namespace gapless::pack::host {

/// Blocks of each length below this one have a copy of their own, of words whose number the compiler knows; the tables'
/// last entry serves all long blocks.
inline constexpr int shortest_long = 257;

inline Offset table_index(Offset length) noexcept { return length < shortest_long ? length : shortest_long; }

/// Fields up to this length have a copy in the table of pairs.
inline constexpr Offset longest_paired = 64;

/// The commonest lengths of fields have copies of their own; the lengths between them share one.
inline int field_class(Offset length) noexcept {
  constexpr std::int8_t classes[] = {0, 0, 1, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 6, 6, 6, 8};
  if (length <= 16) return classes[length];
  if (length <= 32) return length == 20 ? 10 : length == 24 ? 11 : length == 32 ? 12 : 9;
  return 13;
}
inline constexpr int field_classes = 14;

/// One field of a record.
struct Field {
  Offset memory;                 ///< offset of the field in the record
  Offset packed;                 ///< its place in the packed record
  Offset length;                 ///< contiguous bytes
  const layout::Layout* layout;  ///< the field's own modes, nullptr for a plain block

  /// Can it be moved in one pass with another?
  bool is_paired() const noexcept { return layout == nullptr && length <= longest_paired; }
};

/// Two fields of a repeated record. The gaps lead from the first field to the second.
struct Pair {
  Offset length[2];
  Offset source_gap;
  Offset destination_gap;
  Loop records;
};
/// See Kernels::expand.
inline constexpr Offset expansion_slack = 8;

using PairKernel = void(const Pair& pair, const char* source, char* destination);
struct PairRow {
  PairKernel* with[field_classes];
};

/// Element (i, j) of one length from source + i * source_stride + j * length to
/// destination + j * destination_stride + i * length, for i in [0, rows) and j in [0, columns), at least `edge` each.
/// Needs a destination without overlaps; some of it is written twice. Null where the instruction set has no way.
struct Transposer {
  int edge;
  void (*run)(Offset rows, Offset columns, Offset source_stride, Offset destination_stride, const char* source,
              char* destination);
};
/// Elements of 1, 2, 4, 8 and 16 bytes.
inline constexpr int transposed_lengths = 5;

/// All copies but transposes happen in the order of the loops and lists: where destinations overlap, the last one
/// stays.
struct Kernels {
  const char* name;

  /// `count` blocks of `length` bytes, `stride` apart in memory and one after the other in the packed buffer. The first
  /// of each pair packs, the second one unpacks.
  using Rows = void(Offset count, Offset stride, char* memory, char* packed, Offset length);
  Rows* rows[shortest_long + 1][2];

  /// Any number of bytes.
  void (*bytes)(const char* source, char* destination, Offset count);

  using NestOf = void(const Nest& nest, const char* source, char* destination);
  NestOf* nest[shortest_long + 1];

  /// A nest of blocks of any length by streaming stores (pack/host/streaming.hpp), which other processors see in order
  /// only behind end_streams(). Null where the instruction set has none.
  NestOf* streamed;
  void (*end_streams)();

  /// gather: for i in [0, count), `child` from source + offsets[i] to destination + i * stride.
  /// scatter: for i in [0, count), `child` from source + i * stride to destination + offsets[i].
  using Lists = void(const Nest& child, List offsets, Offset count, Offset stride, const char* source,
                     char* destination);
  Lists* gather[shortest_long + 1];
  Lists* scatter[shortest_long + 1];

  /// For i in [first, last): run i, ends[i] - ends[i - 1] bytes long, from memory + offsets[i] to the next packed
  /// bytes.
  void (*gather_runs)(List offsets, List ends, Offset first, Offset last, const char* memory, char* packed);
  /// The other way round: from the next packed bytes to memory + offsets[i].
  void (*scatter_runs)(List offsets, List ends, Offset first, Offset last, char* memory, const char* packed);

  /// For i in [0, count): the plain fields of a record from memory + offsets[i] to packed + i * size, one after the
  /// other.
  using Records = void(const Field* fields, int field_count, List offsets, Offset count, Offset size, char* memory,
                       char* packed);
  /// The first one packs, the second one unpacks.
  Records* records[2];

  /// Entries [first, last), of which the first is in run `run`. Up to expansion_slack entries more are written.
  void (*expand)(const ListInRuns& list, Offset run, Offset first, Offset last, Offset* entries);

  Transposer transpose[transposed_lengths];
  /// By the classes of the first and the second field.
  PairRow pairs[field_classes];
};

[[gnu::visibility("hidden")]] extern const Kernels scalar_kernels;
[[gnu::visibility("hidden")]] extern const Kernels avx2_kernels;
[[gnu::visibility("hidden")]] extern const Kernels avx512_kernels;

/// Null until the first call has chosen.
[[gnu::visibility("hidden")]] extern std::atomic<const Kernels*> chosen_kernels;
[[gnu::visibility("hidden")]] const Kernels& choose_kernels() noexcept;

/// The table in use.
[[gnu::always_inline]] inline const Kernels& kernels() noexcept {
  const Kernels* table = chosen_kernels.load(std::memory_order_relaxed);
  return table != nullptr ? *table : choose_kernels();
}

}  // namespace gapless::pack::host
