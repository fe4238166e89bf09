// What GPU kernels are tuned by, and what the ways to move bytes with a GPU cost: one table, used on every GPU.
//
// Beside each number stands the sweep that found the number, or a note that there is none. A sweep is a table of
// `gapless bench pack`, in which a change of the number shows, or a heading of docs/performance.md, or the name of a
// row under its heading "Sweeps behind the numbers of the tuning table".
#pragma once

#include <cstdint>

namespace gapless::model {

/// Limits and sizes. Jobs, rows and distances are in bytes.
struct GpuTuning {
  // ---- Which regime: pack/gpu/plan/choose.cpp ----
  std::int64_t small_job;             ///< below, the nest is the regime; table `latency`
  std::int64_t line_bytes;            ///< what memory delivers at a time; "GPU kernels"
  std::int64_t sector_bytes;          ///< what caches keep track of; "GPU kernels"
  std::int64_t fewest_across;         ///< elements of a side of a transpose; table `large`, transposes
  std::int64_t shortest_shifted_row;  ///< below, a word has parts of too many rows; table `block_lengths`
  int fast_word_shift;                ///< log2 of the narrowest word that nests move fast; table `block_lengths`
  std::int64_t many_rows;             ///< with fewer, caches keep up with parts of sectors; "rows that split sectors"

  // ---- How a regime cuts a job into tiles: pack/gpu/plan/prepare.cpp ----
  // With fewer tiles, smaller ones are better: they spread small jobs over all multiprocessors. Where a word takes many
  // instructions, or a tile is large, that goes on for longer.
  std::uint64_t few_tiles;          ///< nests, and sectors of whole words; table `large`, 1 and 4 MiB
  std::uint64_t few_part_tiles;     ///< sectors of parts of words; "one word a thread instead of two", records of 24 B
  std::uint64_t few_pair_tiles;     ///< from one layout to another; `gapless bench messages`, 16 KiB to 4 MiB
  std::uint64_t few_shifted_tiles;  ///< table `large`, 17 B every 24 B, 1 and 4 MiB
  std::uint64_t few_large_tiles;    ///< transposes of 1 and 2 B; "tiles of 32 x 32 for elements of 1 and 2 B too"
  std::uint64_t many_tiles;         ///< from here on several stand side by side in a block; "two tiles a block"
  // Words of a row in one line of memory from which a thread has two and four words in flight: about 500 lines in
  // flight in each multiprocessor are best ("four words in flight everywhere").
  std::int64_t two_words_in_flight_from, four_words_in_flight_from;
  std::int64_t fewest_words_of_row;  ///< narrower words make up for fewer; "narrower words for sparse rows"
  std::int64_t side_by_side_words;   ///< rows of at most so many words have tiles side by side; "two tiles a block"

  // ---- Which jobs go together: pack/gpu/batch ----
  std::int64_t largest_batched_job;  ///< beyond, a job runs longer than its launch takes; table `halo`
  std::uint64_t largest_fused_copy;  ///< contiguous; the copy engine is faster beyond; table `many`
  int fused_words_per_thread;        ///< in flight; no sweep is written down

  // ---- Which way: pack/gpu/route ----
  std::int64_t smallest_issued_copy;  ///< below, a kernel behind others is done sooner; table `one_shot`
  std::uint64_t longest_polled_job;   ///< blocks of longer ones would queue up to count themselves; "GPU latency"

  // ---- Unpacking host memory in chunks: pack/gpu/batch/chunks.cpp, table `one_shot` ----
  std::int64_t largest_chunk;
  std::int64_t last_chunk;          ///< whose kernel no copy hides
  std::int64_t from_whole_sectors;  ///< jobs from which chunks pay: blocks of whole sectors, ...
  std::int64_t from_parts_of_sectors;
  std::int64_t from_sparse_blocks;  ///< short blocks, each in a line of its own

  // ---- Page-locked segments that long messages pass through: transfer/segments.cpp ----
  std::int64_t segment_bytes;  ///< the CPU's copy of one finds it in the cache; `gapless bench messages`, pipelined

  // ---- Exported memory that messages between GPUs go through: transfer/schemes/direct.cpp, transfer/rings ----
  // Not swept: a section takes a GPU as long as its launch, and fills a link between GPUs for longer.
  std::int64_t longest_exported_whole;  ///< longer ones are unpacked while they are packed, section by section
  std::int64_t section_bytes;
  // The same of memory of the host, which both GPUs reach by the bus. A sixteenth of a message, within these bounds: a
  // message takes a section longer than its bytes, and a copy engine takes 10 us to begin with one. The CPU packs a
  // section for 25 us and more, in which a GPU unpacks the one before.
  std::int64_t longest_whole_on_host, shortest_section_on_host, longest_section_on_host, shortest_section_by_cpu;

  // ---- Contiguous messages under a library that reads GPU memory, beside others of an exchange ----
  /// Open MPI 4.1.4 takes 8 us for one, whatever its length to 64 KiB, and less for one in host memory up to here.
  std::int64_t longest_joining;

  // ---- Messages that the receiver's GPU reads in the sender's memory: transfer/pulls ----
  std::int64_t long_pull;                   ///< from here on, blocks of noncontiguous messages must be long
  std::int64_t shortest_long_pulled_block;  ///< shorter ones are read by the sector, over a link that is busy by then

  // ---- The resident kernel: pack/cuda/resident, "GPU latency", fourth and fifth steps ----
  int polls_under_way;
  std::uint32_t cycles_between_polls;  ///< at least
  std::uint64_t largest_resident_job;
};

/// Of one engine and direction. Elsewhere than on the machine of the table only their ratios matter.
struct GpuCost {
  std::int64_t waited_ns;  ///< of a call that moves nothing, until the CPU knows that it is done
  std::int64_t gpu_ns;     ///< the same on the GPU, behind other work
  std::int64_t bytes_per_us;
};

/// What a row takes a copy engine beside its bytes, and at least, in picoseconds.
struct GpuRowCost {
  std::int64_t beside_bytes;
  std::int64_t least;
};

/// Three entries each: within the GPU, to host memory, from host memory.
struct GpuCosts {
  GpuCost kernel[3];
  GpuCost chunks;  ///< of kernels, from host memory
  GpuCost copy[3];
  std::int64_t next_copy_ns;      ///< of each further copy of a job
  std::int64_t change_stream_ns;  ///< to one of high priority
  /// The next section waits for the end of a copy, but is issued behind a kernel. `gapless bench messages`, by the bus.
  std::int64_t section_by_copy_ns;
  GpuRowCost row[3];
  std::int64_t split_row_picoseconds;  ///< of a row that is no whole number of sectors
};

// Hopper (compute capability 9.0): medians of H200s on PCIe 5. Used for all architectures until another is measured.
inline constexpr GpuTuning hopper = {
    .small_job = 64 << 10,
    .line_bytes = 64,
    .sector_bytes = 32,
    .fewest_across = 16,
    .shortest_shifted_row = 4,
    .fast_word_shift = 2,
    .many_rows = 12 << 10,
    .few_tiles = 256,
    .few_part_tiles = 2048,
    .few_pair_tiles = 256,
    .few_shifted_tiles = 1024,
    .few_large_tiles = 528,
    .many_tiles = 4000,
    .two_words_in_flight_from = 6,
    .four_words_in_flight_from = 11,
    .fewest_words_of_row = 4,
    .side_by_side_words = 8,
    .largest_batched_job = 1 << 20,
    .largest_fused_copy = 1 << 20,
    .fused_words_per_thread = 2,
    .smallest_issued_copy = 1 << 20,
    .longest_polled_job = 8 << 20,
    .largest_chunk = 8 << 20,
    .last_chunk = 2 << 20,
    .from_whole_sectors = 11 << 20,
    .from_parts_of_sectors = 5 << 20,
    .from_sparse_blocks = 48 << 20,
    .segment_bytes = 1 << 20,
    .longest_exported_whole = 8 << 20,
    .section_bytes = 4 << 20,
    .longest_whole_on_host = 1 << 20,
    .shortest_section_on_host = 512 << 10,
    .longest_section_on_host = 2 << 20,
    .shortest_section_by_cpu = 256 << 10,
    .longest_joining = 8 << 10,
    .long_pull = 4 << 20,
    .shortest_long_pulled_block = 32,
    .polls_under_way = 4,
    .cycles_between_polls = 400,
    .largest_resident_job = 256 << 10,
};

// The sweep of docs/performance.md, "Copy engines"; chunks: "Host memory in chunks".
inline constexpr GpuCosts hopper_costs = {
    .kernel = {{6'300, 1'200, 500'000}, {6'800, 200, 52'200}, {7'700, 1'000, 51'000}},
    .chunks = {20'500, 15'000, 54'000},
    .copy = {{10'500, 2'600, 500'000}, {7'600, 2'600, 55'200}, {8'400, 2'600, 55'200}},
    .next_copy_ns = 2'600,
    .change_stream_ns = 1'000,
    .section_by_copy_ns = 5'000,
    .row = {{0, 15'000}, {150, 1'260}, {190, 2'300}},
    .split_row_picoseconds = 1'000,
};

/// The numbers in use, on every GPU.
inline constexpr GpuTuning gpu_tuning = hopper;
inline constexpr GpuCosts gpu_costs = hopper_costs;

}  // namespace gapless::model
