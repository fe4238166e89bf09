// When packing on the host pays: by how much the datatype engines of two MPI libraries are slower than ours.
//
// The figures are for one side of a message between two processes of a node, fitted to medians of Send/Recv and
// Sendrecv, native and packed in turn in one process: vectors, nests, lists and records of 64 B to 4 MiB (MPICH 5.0.2,
// Open MPI 5.0.11, AMD Zen 5). Where two machines or two ways of exchanging disagreed, the one at which packing gains
// least counts, for a message that is left alone costs next to nothing. What slots save follows the ratios
// that a prototype had to both libraries (1.05 to 2 of Open MPI, 1.4 to 40 of MPICH), but for MPICH's short messages:
// of 1 KiB slots are 0.5 us slower than the library, of 2 to 4 KiB as fast, of 8 KiB several times faster (columns of
// ints, round trips); and for those of Open MPI, of 2 KiB 0.4 us slower a side (edges of a halo, Zen 5), of 4 KiB up to
// 0.9 us slower and never faster (columns of ints, EPYC). Of these only the sign decides.
#pragma once

namespace gapless::model {

/// What is to be moved; blocks and rows as layout::Facts counts them.
struct Amount {
  double bytes;
  double blocks;
  double rows;
};

/// By how much the library is slower, as a sum; negative where it is faster.
struct Saving {
  double start_ns;
  double row_ns;
  double block_ns;
  double byte_ns;

  constexpr double of(const Amount& amount) const noexcept {
    return start_ns + row_ns * amount.rows + block_ns * amount.blocks + byte_ns * amount.bytes;
  }
};

/// What a use of a datatype costs in the library, as far as its size tells.
struct UseCost {
  double start_ns;
  double byte_ns;

  constexpr double of(double bytes) const noexcept { return start_ns + byte_ns * bytes; }
};

/// What it costs to analyse a datatype, to keep the result with it, and to end that.
struct Analysis {
  double start_ns;
  double entry_ns;  ///< for each block or field that its description lists
};

/// One MPI library, noncontiguous host memory.
struct HostProfile {
  /// Up to here contiguous and noncontiguous messages take the same way, through the library's buffers.
  double eager_bytes;
  Saving eager;                  ///< by packing a message of up to `eager_bytes`, instead of leaving it to the library
  Saving rendezvous;             ///< by packing a longer one
  Saving received;               ///< by unpacking a longer one that comes in one piece: sent packed, or contiguous
  Saving to_contiguous;          ///< by packing a longer one between a noncontiguous buffer and a contiguous one
  Saving eager_slots;            ///< by slots (docs/concepts.md), of up to `eager_bytes`
  Saving rendezvous_slots;       ///< by slots, of a longer one
  Saving ring;                   ///< by a ring, which is for messages too long for slots
  Saving pack;                   ///< by gapless's MPI_Pack or MPI_Unpack
  UseCost first_uses;            ///< before anything but its size is known of the datatype: the least of several kinds
  double request_ns = 0;         ///< what a request adds to packing, over a blocking call
  double part_ns = 0;            ///< what a part of a collective adds to packing, over a message
  double long_part_byte_ns = 0;  ///< the same for each byte of a part of more than `eager_bytes`
  double copied_byte_ns = 0.05;  ///< a contiguous part that is copied because others of its call are packed

  constexpr const Saving& message(const Amount& amount) const noexcept {
    return amount.bytes <= eager_bytes ? eager : rendezvous;
  }
  /// What a part of a collective adds to packing, over a message, where both ends have gaps.
  constexpr double part_of(const Amount& amount) const noexcept {
    return part_ns + (amount.bytes > eager_bytes ? long_part_byte_ns * amount.bytes : 0);
  }
  constexpr const Saving& slots(const Amount& amount) const noexcept {
    return amount.bytes <= eager_bytes ? eager_slots : rendezvous_slots;
  }
};

// A datatype costs MPICH more to begin with than the host engine takes for short messages. Long ones go through its
// buffers piece by piece, at some 150 ns a block; packing loses the overlap of both sides' copies. So blocks of less
// than 6 KB are packed, and in collectives of less than 1.5 KB: on a Xeon, parts of 64 KiB and 1 MiB with blocks of 4
// KiB took 1.2 to 3.3 times as long packed. Where one side is contiguous there is no such overlap, and a packed message
// is copied once, by a system call, from process to process: transposes of 512 KiB and 4 MiB gain 0.13 ns a byte. Where
// that call copies straight into a noncontiguous buffer, a block costs 33 ns, and packed bytes are copied once more:
// 0.03 ns a byte on Zen 5, 0.07 on a Xeon.
inline constexpr HostProfile mpich_on_host = {
    .eager_bytes = 8128,
    .eager = {.start_ns = 100, .row_ns = 0, .block_ns = 1, .byte_ns = 0},
    .rendezvous = {.start_ns = 0, .row_ns = 0, .block_ns = 150, .byte_ns = -0.025},
    .received = {.start_ns = 0, .row_ns = 0, .block_ns = 33, .byte_ns = -0.06},
    .to_contiguous = {.start_ns = 0, .row_ns = 0, .block_ns = 150, .byte_ns = 0.1},
    .eager_slots = {.start_ns = -600, .row_ns = 0, .block_ns = 1, .byte_ns = 0.1},
    .rendezvous_slots = {.start_ns = 150, .row_ns = 0, .block_ns = 150, .byte_ns = 0.03},
    .ring = {.start_ns = 0, .row_ns = 0, .block_ns = 150, .byte_ns = 0.04},
    .pack = {.start_ns = 80, .row_ns = 0, .block_ns = 1, .byte_ns = 0},
    .first_uses = {.start_ns = 60, .byte_ns = 0.12},
    .request_ns = 250,
    .long_part_byte_ns = 0.075,
};

// Open MPI has one loop for a row of equal blocks, as good as the host engine's but slow to begin; only in short
// messages every block costs. Beyond its eager limit a contiguous message goes from one process to the other by a
// system call (process_vm_readv), at 2.2 us and 0.08 ns a byte more than noncontiguous ones, which go through shared
// memory. Hence nothing but rows shorter than a cache line is worth packing there. Behind a request, in windows of
// requests above all, packing takes some tenths of a microsecond more than in a blocking call. A halo of six faces of 2
// KiB by MPI_Neighbor_alltoallw, packed, takes 1.2 us more than twelve such messages' savings say
// (bench/collectives.py).
inline constexpr HostProfile open_mpi_on_host = {
    .eager_bytes = 4000,
    .eager = {.start_ns = -80, .row_ns = 4, .block_ns = 1.6, .byte_ns = -0.02},
    .rendezvous = {.start_ns = -1100, .row_ns = 2.5, .block_ns = 0, .byte_ns = -0.0375},
    .received = {.start_ns = -1100, .row_ns = 2.5, .block_ns = 0, .byte_ns = -0.0375},
    .to_contiguous = {.start_ns = -1100, .row_ns = 2.5, .block_ns = 0, .byte_ns = -0.0375},
    .eager_slots = {.start_ns = -400, .row_ns = 4, .block_ns = 1.6, .byte_ns = 0},
    .rendezvous_slots = {.start_ns = -930, .row_ns = 2.5, .block_ns = 0, .byte_ns = 0.13},
    .ring = {.start_ns = 0, .row_ns = 0, .block_ns = 1, .byte_ns = -0.012},
    .pack = {.start_ns = -40, .row_ns = 4.5, .block_ns = 0.15, .byte_ns = 0.01},
    .first_uses = {.start_ns = 40, .byte_ns = 0.08},
    .request_ns = 400,
    .part_ns = 100,
};

// Of a vector or subarray: decoding, the attribute, its deletion. Of a list: 10^5 to 10^7 blocks.
inline constexpr Analysis analysis_on_host = {.start_ns = 2000, .entry_ns = 20};

}  // namespace gapless::model
