// The numbers of a job, and from them the parameters of the kernel that runs it.
#include <algorithm>
#include <bit>

#include "model/gpu.hpp"
#include "pack/gpu/plan/plan.hpp"

namespace gapless::pack::gpu {
namespace {

constexpr std::uint64_t index32_limit = std::uint64_t{1} << 31;  // what Divider<uint32_t> is exact for
constexpr Offset stride32_limit = Offset{1} << 31;
constexpr int sector_shift = 5;
constexpr const model::GpuTuning& tuning = model::gpu_tuning;

int trailing_zeros(std::uint64_t bits, int at_most) { return std::min(at_most, std::countr_zero(bits)); }

/// A job with what every regime needs of it.
struct Request {
  const Shape& shape;
  const Descriptor* descriptor;
  std::uintptr_t memory;  ///< address of layout offset 0
  std::uintptr_t packed;  ///< address of packed byte 0, also where the job begins behind it
  std::uint64_t begin, end;
  bool unpack;

  /// Address of the first row.
  std::uintptr_t origin() const noexcept { return memory + unsigned_(shape.base); }
  int word_shift() const noexcept {
    return trailing_zeros(shape.alignment_bits | origin() | packed, largest_word_shift);
  }
};

Request request_of(const Job& job, const Shape& shape, const Descriptor* descriptor) {
  const std::uint64_t begin = unsigned_(job.begin);
  return {shape,
          descriptor,
          reinterpret_cast<std::uintptr_t>(job.memory),
          reinterpret_cast<std::uintptr_t>(job.packed) - begin,
          begin,
          unsigned_(job.end),
          job.direction == Direction::unpack};
}

/// A job in some columns of a plane, and the shape of no more than these.
struct Columns {
  Job job;
  Shape shape;
};

/// Of a transpose the columns that the job has a part of, if they lie in one plane of the two innermost modes: a regime
/// of two orders visits whole planes.
std::optional<Columns> columns_of(const Job& job, const Shape& shape) {
  if (shape.kind != ShapeKind::nest || shape.mode_count < 2 || shape.table_mode >= 0) return {};
  const Mode inner = shape.modes[0], across = shape.modes[1];
  const bool is_ordered = job.direction == Direction::unpack && !shape.injective;
  if (is_ordered || magnitude(across.stride) >= magnitude(inner.stride)) return {};
  const Offset column = inner.count * shape.length, first = job.begin / column, last = (job.end - 1) / column;
  if (first / across.count != last / across.count) return {};
  Columns columns{job, shape};
  Offset repetition = first;
  for (int i = 1; i < shape.mode_count; ++i) {
    columns.shape.base += repetition % shape.modes[i].count * shape.modes[i].stride;
    repetition /= shape.modes[i].count;
  }
  columns.shape.modes[1].count = last - first + 1;
  columns.shape.mode_count = last == first ? 1 : 2;
  columns.job.begin -= first * column;
  columns.job.end -= first * column;
  return columns;
}

Range range_of(const Request& request, int shift) {
  Range range{};
  range.memory = request.memory;
  range.packed = request.packed;
  range.begin = request.begin;
  range.unpack = request.unpack;
  const std::uint64_t first = (request.begin + (std::uint64_t{1} << shift) - 1) >> shift;
  const std::uint64_t last = request.end >> shift;
  range.first_word = first;
  if (last <= first) {
    range.head = static_cast<std::uint32_t>(request.end - request.begin);
    return range;
  }
  range.word_count = last - first;
  range.head = static_cast<std::uint32_t>((first << shift) - request.begin);
  range.tail = static_cast<std::uint32_t>(request.end - (last << shift));
  return range;
}

// ---- Numbers ----

/// Do all digits of words below `end_word`, all level counts and all strides fit 32 bits?
bool fits_index32(const Shape& shape, std::uint64_t end_word, int shift) {
  if (end_word >= index32_limit || unsigned_(shape.length) >> shift >= index32_limit) return false;
  return std::all_of(shape.modes, shape.modes + shape.mode_count, [](const Mode& mode) {
    return unsigned_(mode.count) < index32_limit && mode.stride < stride32_limit && mode.stride >= -stride32_limit;
  });
}

/// Every word of every sector that the rows of the range may touch has a number below 2^31.
bool rows_fit_index32(const Request& request) {
  const std::uint64_t length = unsigned_(request.shape.length);
  if (request.end - request.begin >= index32_limit / 2 || length >= index32_limit / 4) return false;
  const std::uint64_t rows = (request.end - request.begin) / length + 2;
  return rows * (length / 2 + 64) < index32_limit && fits_index32(request.shape, request.end / length + 1, 0);
}

/// Fills in the mode of smallest stride, if it is not the innermost.
void note_transposition(const Request& request, Numbers& numbers) {
  const Shape& shape = request.shape;
  if (shape.table_mode >= 0) return;
  int across = 0;
  Offset elements = shape.modes[0].count;
  for (int i = 1; i < shape.mode_count; ++i) {
    if (magnitude(shape.modes[i].stride) < magnitude(shape.modes[across].stride)) across = i;
    elements *= shape.modes[i].count;
  }
  if (across == 0) return;
  // A regime of two orders visits whole planes of the two modes, so a job of a part of them would waste most visits. A
  // plane of no more than two jobs has fewer than 2^32 elements where the job's last one has a number below 2^31.
  const bool is_whole_job = numbers.bytes == elements * shape.length;
  const Offset plane = shape.modes[0].count * shape.modes[across].count * shape.length;
  if (across == 1 ? plane > 2 * numbers.bytes : !is_whole_job) return;
  numbers.across_mode = across;
  numbers.inner_count = shape.modes[0].count;
  numbers.inner_stride = shape.modes[0].stride;
  numbers.across_count = shape.modes[across].count;
  numbers.across_stride = shape.modes[across].stride;
}

Numbers numbers_of(const Request& request) {
  const Shape& shape = request.shape;
  Numbers numbers;
  numbers.kind = shape.kind;
  numbers.unpack = request.unpack;
  numbers.injective = shape.injective;
  if (shape.kind != ShapeKind::nest) return numbers;
  numbers.word_shift = request.word_shift();
  numbers.row_alignment_shift = trailing_zeros(shape.place_bits | request.origin(), sector_shift);
  numbers.fits_32_bits = fits_index32(shape, (request.end >> std::min(numbers.word_shift, 2)) + 1, numbers.word_shift);
  numbers.bytes = static_cast<Offset>(request.end - request.begin);
  numbers.row_length = shape.length;
  numbers.row_distance = shape.mean_distance;
  numbers.whole_words = ((request.begin | request.end) & ((std::uint64_t{1} << numbers.word_shift) - 1)) == 0;
  numbers.rows_fit_32_bits = rows_fit_index32(request);
  note_transposition(request, numbers);
  return numbers;
}

// ---- Works ----

/// Levels from `level` on: modes [begin, end) of the shape.
template <class Index>
void put_modes(const Request& request, int begin, int end, int level, Nest<Index>& nest) {
  const Shape& shape = request.shape;
  nest.table_level = -1;
  for (int i = begin; i < end; ++i, ++level) {
    nest.levels[level] = {make_divider(static_cast<Index>(shape.modes[i].count)),
                          static_cast<std::make_signed_t<Index>>(shape.modes[i].stride)};
    if (i == shape.table_mode) nest.table_level = level;
  }
  nest.level_count = level;
  if (nest.table_level >= 0) nest.table = request.descriptor->table(request.descriptor->root().offsets);
}

template <class Index>
void put_all_modes(const Request& request, int level, Nest<Index>& nest) {
  put_modes(request, 0, request.shape.mode_count, level, nest);
}

template <class Index>
Nest<Index> word_nest(const Request& request, int shift) {
  Nest<Index> nest{};
  nest.word_shift = shift;
  nest.levels[0] = {make_divider(static_cast<Index>(request.shape.length >> shift)),
                    static_cast<std::make_signed_t<Index>>(Index{1} << shift)};
  put_all_modes(request, 1, nest);
  return nest;
}

Tree tree_of(const Request& request, int shift) {
  return {request.descriptor->bytes(), make_divider(unsigned_(request.shape.repetition_size)), request.shape.extent,
          shift};
}

/// How many words a thread should have in flight: `most` if at least `few` tiles are left then, else 1.
int spread_words(std::uint64_t words, int most, std::uint64_t few) {
  return words < few * static_cast<std::uint64_t>(most * threads_per_block) ? 1 : most;
}

/// Does the job read rows so far apart that no two of them share a line of memory?
bool reads_own_lines(const Request& request) {
  return !request.unpack && request.shape.mean_distance >= tuning.line_bytes;
}

/// How many words of a row lie in one line of memory, on average.
Offset words_in_line(const Shape& shape, int shift) {
  const Offset lines_in_row = (shape.length + tuning.line_bytes - 1) / tuning.line_bytes * tuning.line_bytes;
  const Offset spanned = std::max(shape.length, std::min(shape.mean_distance, lines_in_row));
  return shape.length * tuning.line_bytes / spanned >> shift;
}

/// How many words a thread should have in flight. The memory is fastest with about 500 of its lines in flight in each
/// multiprocessor: fewer do not fill it, more get in each other's way.
int words_in_flight(const Shape& shape, const Range& range, int shift) {
  const Offset words_per_line = words_in_line(shape, shift);
  // A word has to wait until its entry in the table is read: twice as many are in flight.
  const Offset wanted = shape.table_mode >= 0 ? words_per_line * 2 : words_per_line;
  const int fitting = wanted < tuning.two_words_in_flight_from ? 1 : wanted < tuning.four_words_in_flight_from ? 2 : 4;
  int words = std::min(fitting, most_words_per_thread(std::size_t{1} << shift, shape.table_mode >= 0));
  while (words > 1 && range.tiles(words) < tuning.few_tiles) words /= 2;
  return words;
}

/// A warp's load that reads rows in lines of their own should touch 8 lines. Wide words make it touch more, for the
/// number of its threads is fixed; so words are made narrower.
int nest_word_shift(const Request& request) {
  const Shape& shape = request.shape;
  int shift = request.word_shift();
  if (!reads_own_lines(request) || shape.table_mode >= 0) return shift;
  while (shift > 2 && shape.length >> shift < tuning.fewest_words_of_row) --shift;
  return shift;
}

/// Rows of few words, each in lines of its own, are read faster by a twentieth to a seventh if neighbouring lines are
/// read at a time. Blocks run in any order and the tiles of one block together: so a block gets several tiles.
int tiles_in_block(const Request& request, std::uint64_t tiles, int shift) {
  const Shape& shape = request.shape;
  const Offset words = shape.length >> shift;
  if (!reads_own_lines(request) || tiles < tuning.many_tiles || words > tuning.side_by_side_words) return 1;
  return words == 2 && shift == 2 ? most_tiles_per_block : 2;
}

template <class Index>
NestWork<Index> nest_work(const Request& request) {
  const int shift = nest_word_shift(request);
  const Nest<Index> nest = word_nest<Index>(request, shift);
  Range range = range_of(request, shift);
  range.memory = request.origin();
  const int words = words_in_flight(request.shape, range, shift);
  return {range, words, tiles_in_block(request, range.tiles(words), shift), nest};
}

Rows rows_of(const Request& request) {
  const std::uint64_t length = unsigned_(request.shape.length), first_row = request.begin / length;
  const std::uint64_t skipped = first_row * length;
  Rows rows{};
  rows.memory = request.origin();
  rows.packed = request.packed + skipped;
  rows.begin = static_cast<std::uint32_t>(request.begin - skipped);
  rows.end = static_cast<std::uint32_t>(request.end - skipped);
  rows.length = static_cast<std::uint32_t>(length);
  rows.first_row = static_cast<std::uint32_t>(first_row);
  rows.row_count = (rows.end + rows.length - 1) / rows.length;
  put_all_modes(request, 0, rows.places);
  return rows;
}

ShiftedWork shifted_work(const Request& request) {
  ShiftedWork work{};
  work.rows = rows_of(request);
  work.row_length = make_divider(work.rows.length);
  const auto misaligned = static_cast<std::int32_t>((work.rows.packed + work.rows.begin) % 8);
  work.lead = static_cast<std::int32_t>(work.rows.begin) - misaligned;
  work.word_count = static_cast<std::uint32_t>(static_cast<std::int32_t>(work.rows.end) - work.lead + 7) / 8;
  work.words_per_thread = spread_words(work.word_count, ShiftedWork::most_words_per_thread(sizeof(std::uint64_t)),
                                       tuning.few_shifted_tiles);
  return work;
}

SectorsWork sectors_work(const Request& request, const Numbers& numbers) {
  const Shape& shape = request.shape;
  SectorsWork work{};
  work.rows = rows_of(request);
  const std::uint64_t ends = request.begin | request.end;
  const int exact_shift =
      trailing_zeros(shape.alignment_bits | request.origin() | request.packed | ends, largest_word_shift);
  work.is_exact = exact_shift >= 2;
  work.shift = work.is_exact ? exact_shift : 3;
  work.unpack = request.unpack;
  const bool is_long = request.unpack && shape.length > sector_bytes;
  work.alignment = is_long ? sector_bytes : 1u << work.shift;
  const std::uint32_t row_alignment = 1u << trailing_zeros(shape.place_bits | request.origin(), sector_shift);
  const std::uint32_t slack = work.alignment > row_alignment ? work.alignment - row_alignment : 0;
  const std::uint32_t units = (work.rows.length + slack + work.alignment - 1) / work.alignment;
  const std::uint32_t words = units * work.alignment >> work.shift;
  work.words_per_row = make_divider(request.unpack ? words : std::bit_ceil(words));
  const std::uint64_t all_words = std::uint64_t{work.rows.row_count} * work.words_per_row.divisor;
  const int most = SectorsWork::most_words_per_thread(std::size_t{1} << work.shift);
  work.words_per_thread =
      request.unpack ? spread_words(all_words, most, work.is_exact ? tuning.few_tiles : tuning.few_part_tiles) : 1;
  const bool is_side_by_side = !request.unpack && work.shift > 2 && work.tiles() >= tuning.many_tiles;
  work.tiles_per_block = is_side_by_side ? most_row_tiles_per_block : 1;
  work.is_streamed = request.unpack && has_lone_sectors(numbers);
  work.is_prefetched = is_long || shape.mean_distance <= 2 * sector_bytes;
  return work;
}

/// Fills in the modes that number the planes, and which planes the range lies in.
void number_planes(const Request& request, int across_mode, Planes& work) {
  const Shape& shape = request.shape;
  std::uint32_t elements = 1, planes = 1;
  int level = 0;
  for (int i = 0; i < shape.mode_count; ++i) {
    const auto count = static_cast<std::uint32_t>(shape.modes[i].count);
    if (i == across_mode) work.across_packed = elements;
    if (i != 0 && i != across_mode) {
      const auto counter = make_divider(count);
      work.outer_places.levels[level] = {counter, static_cast<std::int32_t>(shape.modes[i].stride)};
      work.outer_packed.levels[level] = {counter, static_cast<std::int32_t>(elements)};
      ++level;
      planes *= count;
    }
    elements *= count;
  }
  work.outer_places.level_count = work.outer_packed.level_count = level;
  work.outer_places.table_level = work.outer_packed.table_level = -1;
  work.outer_count = planes;
  if (across_mode != 1) return;
  const std::uint64_t each = std::uint64_t{work.inner} * work.across;
  const std::uint64_t last = work.range.first_word + std::max<std::uint64_t>(work.range.word_count, 1) - 1;
  work.first_outer = static_cast<std::uint32_t>(work.range.first_word / each);
  work.outer_count = static_cast<std::uint32_t>(last / each) - work.first_outer + 1;
}

/// Cuts the planes into tiles of side x side elements.
void cut(TransposeWork& work, std::uint32_t side) {
  work.side = static_cast<int>(side);
  work.inner_tiles = make_divider((work.inner + side - 1) / side);
  work.across_tiles = make_divider((work.across + side - 1) / side);
}

/// Fills in what the transpose and interleaved regimes share.
void put_planes(const Request& request, const Numbers& numbers, Planes& work) {
  work.range = range_of(request, numbers.word_shift);
  work.range.memory = request.origin();
  work.places = word_nest<std::uint32_t>(request, numbers.word_shift);
  work.inner = static_cast<std::uint32_t>(numbers.inner_count);
  work.across = static_cast<std::uint32_t>(numbers.across_count);
  work.inner_stride = static_cast<std::int32_t>(numbers.inner_stride);
  work.across_stride = static_cast<std::int32_t>(numbers.across_stride);
  number_planes(request, numbers.across_mode, work);
}

TransposeWork transpose_work(const Request& request, const Numbers& numbers) {
  TransposeWork work{};
  put_planes(request, numbers, work);
  if (numbers.word_shift <= 1) {
    cut(work, large_side);
    if (work.tiles() >= tuning.few_large_tiles) return work;
  }
  cut(work, small_side);
  return work;
}

InterleavedWork interleaved_work(const Request& request, const Numbers& numbers) {
  InterleavedWork work{};
  put_planes(request, numbers, work);
  const std::uint32_t word = 1u << numbers.word_shift, line = bank_line_bytes / word;
  work.fields = make_divider(work.across);
  work.structs_apart = threads_per_block / work.across;
  const std::uint32_t stretch = work.structs_apart * (interleaved_tile_bytes / word / threads_per_block);
  work.stretch = make_divider(stretch);
  work.stretches = make_divider((work.inner + stretch - 1) / stretch);
  // The elements of a struct lie in banks as far from each other as may be.
  work.pitch = (stretch + line - 1) / line * line + (line + work.across - 1) / work.across;
  return work;
}

/// Tiles of the list, and which of them the range lies in.
struct ListTiles {
  std::uint64_t per_list, first, last;

  ListTiles(const Request& request, const Range& range, int shift) {
    const auto list_size = unsigned_(request.shape.list_size);
    const std::uint64_t bytes = static_cast<std::uint64_t>(segment_tile_words(shift)) << shift;
    per_list = (list_size + bytes - 1) / bytes;
    const auto tile_of = [&](std::uint64_t k) { return k / list_size * per_list + k % list_size / bytes; };
    const std::uint64_t begin = range.first_word << shift;
    first = tile_of(begin);
    last = tile_of(begin + (std::max<std::uint64_t>(range.word_count, 1) << shift) - 1);
  }
};

template <class Entry>
Launch segments_work_of(const Request& request, const RunTable& runs) {
  constexpr Offset far_apart = 4;
  const Shape& shape = request.shape;
  const int shift = request.word_shift();
  SegmentsWork<Entry> work{};
  work.range = range_of(request, shift);
  work.tree = tree_of(request, shift);
  work.runs = static_cast<const Entry*>(runs.entries);
  work.unit_shift = runs.narrow ? runs.unit_shift : 0;
  work.hints = request.descriptor->table(request.descriptor->root().hints);
  work.list_size = unsigned_(shape.list_size);
  const ListTiles tiles(request, work.range, shift);
  if (std::max(tiles.last, tiles.per_list) >= index32_limit) return TreeWork{work.range, work.tree};
  work.tiles_per_list = make_divider(static_cast<std::uint32_t>(tiles.per_list));
  work.first_tile = static_cast<std::uint32_t>(tiles.first);
  work.tile_count = static_cast<std::uint32_t>(tiles.last - tiles.first + 1);
  // Fetching ahead reads each sector twice, which single words far apart do not repay.
  work.is_prefetched =
      request.unpack && (shape.mean_run > sector_bytes || shape.mean_distance < far_apart * shape.mean_run);
  work.repetitions.word_shift = 0;
  put_all_modes(request, 0, work.repetitions);
  work.list_memory = request.origin();
  return work;
}

/// Lists of more tiles than 31 bits count are walked as trees.
Launch segments_work(const Request& request) {
  const RunTable runs = request.descriptor->runs(request.descriptor->root().runs);
  return runs.narrow ? segments_work_of<NarrowRun>(request, runs) : segments_work_of<Run>(request, runs);
}

}  // namespace

Regime regime_of(const Job& job, const Shape& shape, std::optional<Regime> forced) noexcept {
  return choose_regime(numbers_of(request_of(job, shape, nullptr)), forced);
}

Launch prepare(const Job& job, const Shape& shape, const Descriptor* descriptor,
               std::optional<Regime> forced) noexcept {
  if (job.begin >= job.end) return {};
  const std::optional<Columns> columns = columns_of(job, shape);
  const Request request =
      columns ? request_of(columns->job, columns->shape, descriptor) : request_of(job, shape, descriptor);
  const Numbers numbers = numbers_of(request);
  switch (choose_regime(numbers, forced)) {
    case Regime::contiguous:
      return ContiguousWork{request.origin() + request.begin, request.packed + request.begin,
                            request.end - request.begin, request.unpack};
    case Regime::nest:
      if (numbers.fits_32_bits) return nest_work<std::uint32_t>(request);
      return nest_work<std::uint64_t>(request);
    case Regime::shifted:
      return shifted_work(request);
    case Regime::sectors:
      return sectors_work(request, numbers);
    case Regime::transpose:
      return transpose_work(request, numbers);
    case Regime::interleaved:
      return interleaved_work(request, numbers);
    case Regime::segments:
      return segments_work(request);
    case Regime::tree:
      return TreeWork{range_of(request, request.word_shift()), tree_of(request, request.word_shift())};
    case Regime::ordered:
      return OrderedWork{range_of(request, 0), tree_of(request, 0), request.end - request.begin};
  }
  return {};
}

}  // namespace gapless::pack::gpu
