// How fast is packing on the host, against the MPI library's own MPI_Pack, a loop written for the one layout, and
// memcpy of the same packed bytes? All in one process, interleaved. Compiled once per MPI; host_pack.py runs both and
// judges.
//
// Prints one JSON object per line: the library first, then a row for each layout and direction.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>

#include "layout/datatype/datatype.hpp"
#include "measure.hpp"
#include "pack/host/engine.hpp"

namespace {

using gapless::layout::ArrayOrder;
using gapless::layout::Datatype;
using gapless::layout::Offset;
namespace layout = gapless::layout;
namespace host = gapless::pack::host;
using gapless::pack::Direction;
using gapless::pack::Job;

/// One type, told to the library and to gapless alike.
struct Type {
  MPI_Datatype mpi;
  Datatype gapless;
};

const Type byte_type{MPI_BYTE, layout::named(1, 1)};
const Type char_type{MPI_CHAR, layout::named(1, 1)};
const Type int_type{MPI_INT, layout::named(4, 4)};
const Type float_type{MPI_FLOAT, layout::named(4, 4)};
const Type double_type{MPI_DOUBLE, layout::named(8, 8)};

std::vector<Offset> offsets_of(const std::vector<int>& values) { return {values.begin(), values.end()}; }

Type vector(int count, int length, int stride, const Type& child) {
  Type type{MPI_DATATYPE_NULL, layout::vector(count, length, stride, child.gapless)};
  MPI_Type_vector(count, length, stride, child.mpi, &type.mpi);
  return type;
}

Type hvector(int count, int length, MPI_Aint stride, const Type& child) {
  Type type{MPI_DATATYPE_NULL, layout::hvector(count, length, stride, child.gapless)};
  MPI_Type_create_hvector(count, length, stride, child.mpi, &type.mpi);
  return type;
}

Type resized(const Type& child, MPI_Aint extent) {
  Type type{MPI_DATATYPE_NULL, layout::resized(child.gapless, 0, extent)};
  MPI_Type_create_resized(child.mpi, 0, extent, &type.mpi);
  return type;
}

Type subarray(const std::vector<int>& sizes, const std::vector<int>& subsizes, const std::vector<int>& starts,
              const Type& child) {
  Type type{MPI_DATATYPE_NULL, layout::subarray(offsets_of(sizes), offsets_of(subsizes), offsets_of(starts),
                                                ArrayOrder::c, child.gapless)};
  MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C,
                           child.mpi, &type.mpi);
  return type;
}

Type indexed(const std::vector<int>& lengths, const std::vector<int>& displacements, const Type& child) {
  Type type{MPI_DATATYPE_NULL, layout::indexed(offsets_of(lengths), offsets_of(displacements), child.gapless)};
  MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), displacements.data(), child.mpi, &type.mpi);
  return type;
}

Type indexed_block(int length, const std::vector<int>& displacements, const Type& child) {
  Type type{MPI_DATATYPE_NULL, layout::indexed_block(length, offsets_of(displacements), child.gapless)};
  MPI_Type_create_indexed_block(static_cast<int>(displacements.size()), length, displacements.data(), child.mpi,
                                &type.mpi);
  return type;
}

Type structure(const std::vector<int>& displacements, const std::vector<Type>& children, MPI_Aint extent) {
  const std::vector<int> lengths(children.size(), 1);
  const std::vector<MPI_Aint> places(displacements.begin(), displacements.end());
  std::vector<MPI_Datatype> types;
  std::vector<Datatype> datatypes;
  for (const Type& child : children) {
    types.push_back(child.mpi);
    datatypes.push_back(child.gapless);
  }
  Type type{MPI_DATATYPE_NULL, layout::structure(offsets_of(lengths), offsets_of(displacements), datatypes)};
  MPI_Type_create_struct(static_cast<int>(types.size()), lengths.data(), places.data(), types.data(), &type.mpi);
  return resized(type, extent);
}

/// Somebody's own loop for one layout, from memory to packed or back.
using Loop = std::function<void(char* memory, char* packed, Direction direction)>;

template <std::size_t bytes>
void copy_block(char* memory, char* packed, Direction direction) {
  std::memcpy(direction == Direction::pack ? packed : memory, direction == Direction::pack ? memory : packed, bytes);
}

/// The two directions are two loops, as somebody would write them.
template <class Body>
Loop both_ways(Body body) {
  return [body](char* memory, char* packed, Direction direction) {
    if (direction == Direction::pack) {
      body(memory, packed, std::integral_constant<Direction, Direction::pack>());
    } else {
      body(memory, packed, std::integral_constant<Direction, Direction::unpack>());
    }
  };
}

template <std::size_t bytes>
Loop rows(Offset count, Offset stride) {
  return both_ways([=](char* memory, char* packed, auto direction) {
    for (Offset i = 0; i < count; ++i) copy_block<bytes>(memory + i * stride, packed + i * bytes, direction);
  });
}

template <std::size_t bytes>
Loop planes(Offset outer, Offset outer_stride, Offset inner, Offset inner_stride) {
  return both_ways([=](char* memory, char* packed, auto direction) {
    for (Offset i = 0; i < outer; ++i) {
      for (Offset j = 0; j < inner; ++j) {
        copy_block<bytes>(memory + i * outer_stride + j * inner_stride, packed, direction);
        packed += bytes;
      }
    }
  });
}

/// The corner of `edge` elements in every direction of a 4-D array of floats; a row of it is `bytes` long.
template <std::size_t bytes>
Loop corner(Offset edge, Offset size) {
  return both_ways([=](char* memory, char* packed, auto direction) {
    for (Offset i = 0; i < edge; ++i) {
      for (Offset j = 0; j < edge; ++j) {
        for (Offset k = 0; k < edge; ++k, packed += bytes) {
          copy_block<bytes>(memory + ((i * size + j) * size + k) * size * 4, packed, direction);
        }
      }
    }
  });
}

template <std::size_t bytes>
Loop list(std::vector<int> displacements, Offset unit) {
  return both_ways([displacements = std::move(displacements), unit](char* memory, char* packed, auto direction) {
    for (std::size_t i = 0; i < displacements.size(); ++i) {
      copy_block<bytes>(memory + displacements[i] * unit, packed + i * bytes, direction);
    }
  });
}

Loop ragged(std::vector<int> lengths, std::vector<int> displacements, Offset unit) {
  return both_ways([=](char* memory, char* packed, auto direction) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::size_t bytes = static_cast<std::size_t>(lengths[i] * unit);
      char* at = memory + displacements[i] * unit;
      std::memcpy(direction == Direction::pack ? packed : at, direction == Direction::pack ? at : packed, bytes);
      packed += bytes;
    }
  });
}

struct Row {
  std::string name;
  Type type;
  int count;
  Loop loop;
};

std::mt19937_64 random_source(20240601);

int random_between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_source); }

std::vector<int> random_displacements(int count, int length, int least_gap, int most_gap) {
  std::vector<int> displacements;
  for (int i = 0, at = 0; i < count; ++i, at += length + random_between(least_gap, most_gap))
    displacements.push_back(at);
  return displacements;
}

Row ragged_row(const char* name, int count, const Type& child, Offset unit) {
  std::vector<int> lengths, displacements;
  for (int i = 0, at = 0; i < count; ++i) {
    lengths.push_back(random_between(4, 64) / static_cast<int>(unit));
    displacements.push_back(at);
    at += lengths.back() + random_between(1, 16);
  }
  return {name, indexed(lengths, displacements, child), 1, ragged(lengths, displacements, unit)};
}

void add_strided_rows(std::vector<Row>& table) {
  table.push_back({"vector, 4 B every 16 B x 1024, int", vector(1024, 1, 4, int_type), 1, rows<4>(1024, 16)});
  table.push_back({"vector, 4 B every 16 B x 1024, byte", vector(1024, 4, 16, byte_type), 1, rows<4>(1024, 16)});
  table.push_back({"vector, 8 B every 16 B x 65536, double", vector(65536, 1, 2, double_type), 1, rows<8>(65536, 16)});
  table.push_back({"vector, 8 B every 64 B x 65536, double", vector(65536, 1, 8, double_type), 1, rows<8>(65536, 64)});
  table.push_back({"vector, 12 B every 20 B x 10000, float", vector(10000, 3, 5, float_type), 1, rows<12>(10000, 20)});
  table.push_back({"vector, 64 B every 512 B x 65536, int", vector(65536, 16, 128, int_type), 1, rows<64>(65536, 512)});
  table.push_back(
      {"vector, 64 B every 512 B x 65536, byte", vector(65536, 64, 512, byte_type), 1, rows<64>(65536, 512)});
  table.push_back(
      {"vector, 100 B every 200 B x 20000, int", vector(20000, 25, 50, int_type), 1, rows<100>(20000, 200)});
  table.push_back({"vector, 256 B every 16 KiB x 128, int", vector(128, 64, 4096, int_type), 1, rows<256>(128, 16384)});
  table.push_back(
      {"vector, 1 KiB every 2 KiB x 512, double", vector(512, 128, 256, double_type), 1, rows<1024>(512, 2048)});
  table.push_back(
      {"vector, 4 KiB every 8 KiB x 4096, int", vector(4096, 1024, 2048, int_type), 1, rows<4096>(4096, 8192)});
  table.push_back(
      {"vector, 4 KiB every 8 KiB x 4096, byte", vector(4096, 4096, 8192, byte_type), 1, rows<4096>(4096, 8192)});
  table.push_back({"small, 16 B every 64 B x 4, double", vector(4, 2, 8, double_type), 1, rows<16>(4, 64)});
  table.push_back({"small, 8 B every 32 B x 128, double", vector(128, 1, 4, double_type), 1, rows<8>(128, 32)});
  table.push_back({"contiguous, 64 KiB, double", vector(1, 8192, 8192, double_type), 1, rows<65536>(1, 65536)});
  table.push_back({"resized vector, 3 x 8 B every 16 B, x 10000", resized(vector(3, 1, 2, double_type), 64), 10000,
                   planes<8>(10000, 64, 3, 16)});
}

void add_array_rows(std::vector<Row>& table) {
  const std::vector<int> cube{128, 128, 128};
  table.push_back(
      {"face X-Y of 128^3 doubles", subarray(cube, {1, 128, 128}, {0, 0, 0}, double_type), 1, rows<131072>(1, 131072)});
  table.push_back(
      {"face X-Z of 128^3 doubles", subarray(cube, {128, 1, 128}, {0, 0, 0}, double_type), 1, rows<1024>(128, 131072)});
  table.push_back(
      {"face Y-Z of 128^3 doubles", subarray(cube, {128, 128, 1}, {0, 0, 0}, double_type), 1, rows<8>(16384, 1024)});
  table.push_back({"halo Y-Z, 2 deep, of 128^3 doubles", subarray(cube, {128, 128, 2}, {0, 0, 0}, double_type), 1,
                   rows<16>(16384, 1024)});
  table.push_back({"4-D subarray 16^4 of 64^4 floats",
                   subarray({64, 64, 64, 64}, {16, 16, 16, 16}, {0, 0, 0, 0}, float_type), 1, corner<64>(16, 64)});
  table.push_back({"4-D subarray 4^4 of 16^4 floats",
                   subarray({16, 16, 16, 16}, {4, 4, 4, 4}, {0, 0, 0, 0}, float_type), 1, corner<16>(4, 16)});
  table.push_back({"transposed 1024 x 1024 doubles", hvector(1024, 1, 8, vector(1024, 1, 1024, double_type)), 1,
                   planes<8>(1024, 8, 1024, 8192)});
  table.push_back({"transposed 1000 x 1000 floats", hvector(1000, 1, 4, vector(1000, 1, 1000, float_type)), 1,
                   planes<4>(1000, 4, 1000, 4000)});
  table.push_back({"transposed 200 x 200 double complex", hvector(200, 1, 16, vector(200, 2, 400, double_type)), 1,
                   planes<16>(200, 16, 200, 3200)});
  table.push_back({"transposed 400 x 400 triples of floats", hvector(400, 1, 12, vector(400, 3, 1200, float_type)), 1,
                   planes<12>(400, 12, 400, 4800)});
  table.push_back({"transposed 1000 x 1000 triples of floats", hvector(1000, 1, 12, vector(1000, 3, 3000, float_type)),
                   1, planes<12>(1000, 12, 1000, 12000)});
}

void add_irregular_rows(std::vector<Row>& table) {
  table.push_back({"struct {double, int, int, char} x 100000",
                   structure({0, 8, 12, 16}, {double_type, int_type, int_type, char_type}, 24), 100000,
                   rows<17>(100000, 24)});
  table.push_back({"struct {char, double, int} x 100000", structure({0, 8, 16}, {char_type, double_type, int_type}, 24),
                   100000, both_ways([](char* memory, char* packed, auto direction) {
                     for (int i = 0; i < 100000; ++i, memory += 24, packed += 13) {
                       copy_block<1>(memory, packed, direction);
                       copy_block<12>(memory + 8, packed + 1, direction);
                     }
                   })});
  const std::vector<int> eights = random_displacements(100000, 1, 1, 6),
                         touching = random_displacements(100000, 1, 0, 6);
  const std::vector<int> ones(100000, 1);
  table.push_back(
      {"indexed, 8 B x 100000, random gaps, double", indexed(ones, eights, double_type), 1, list<8>(eights, 8)});
  table.push_back(
      {"indexed, 8 B x 100000, some touching, double", indexed(ones, touching, double_type), 1, list<8>(touching, 8)});
  table.push_back(ragged_row("indexed, 4..64 B x 100000, random gaps, int", 100000, int_type, 4));
  table.push_back(ragged_row("indexed, 4..64 B x 100000, random gaps, byte", 100000, byte_type, 1));
  table.push_back(ragged_row("indexed, 4..64 B x 200, random gaps, int", 200, int_type, 4));
  const std::vector<int> sixteens = random_displacements(100000, 2, 1, 12);
  table.push_back({"indexed_block, 16 B x 100000, random gaps, double", indexed_block(2, sixteens, double_type), 1,
                   list<16>(sixteens, 8)});
  std::vector<int> shuffled = random_displacements(100000, 2, 1, 12);
  std::shuffle(shuffled.begin(), shuffled.end(), random_source);
  table.push_back({"indexed_block, 16 B x 100000, shuffled, double", indexed_block(2, shuffled, double_type), 1,
                   list<16>(shuffled, 8)});
  // The particles that leave a process.
  const std::vector<int> leaving = random_displacements(100000, 1, 0, 2);
  table.push_back({"indexed_block, struct {double, int} x 100000, random gaps",
                   indexed_block(1, leaving, structure({0, 16}, {double_type, int_type}, 24)), 1,
                   both_ways([leaving](char* memory, char* packed, auto direction) {
                     for (const int i : leaving) {
                       copy_block<8>(memory + i * 24, packed, direction);
                       copy_block<4>(memory + i * 24 + 16, packed + 8, direction);
                       packed += 12;
                     }
                   })});
}

std::vector<Row> make_table() {
  std::vector<Row> table;
  add_strided_rows(table);
  add_array_rows(table);
  add_irregular_rows(table);
  return table;
}

struct Settings {
  int samples = 61;
  double sample_seconds = 0.00025;  // short, so that a disturbance meets all contestants
  const char* only = "";
};

/// Page-aligned memory with random contents.
struct Buffer {
  explicit Buffer(std::size_t bytes)
      : data(static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))) {
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random_source();
      std::memcpy(data.get() + i, &word, sizeof word);
    }
  }
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> data;
};

void fail(const Row& row, const char* who) {
  std::fprintf(stderr, "%s: wrong result for %s\n", who, row.name.c_str());
  std::exit(1);
}

/// All three give the same bytes in both directions.
void verify(const Row& row, Offset span, Offset bytes, const Job& job) {
  const int packed_bytes = static_cast<int>(bytes);
  const auto size = static_cast<std::size_t>(bytes), whole = static_cast<std::size_t>(span);
  char* memory = static_cast<char*>(job.memory);
  Buffer expected(size), packed(size);
  row.loop(memory, expected.data.get(), Direction::pack);
  Job mine = job;
  mine.packed = packed.data.get();
  mine.direction = Direction::pack;
  host::run(mine);
  if (std::memcmp(packed.data.get(), expected.data.get(), size) != 0) fail(row, "gapless");
  int position = 0;
  MPI_Pack(memory, row.count, row.type.mpi, packed.data.get(), packed_bytes, &position, MPI_COMM_SELF);
  if (position != packed_bytes || std::memcmp(packed.data.get(), expected.data.get(), size) != 0) fail(row, "MPI_Pack");

  Buffer source(size);
  std::vector<char> wanted(memory, memory + span), got = wanted;
  row.loop(wanted.data(), source.data.get(), Direction::unpack);
  mine.memory = got.data();
  mine.packed = source.data.get();
  mine.direction = Direction::unpack;
  host::run(mine);
  if (std::memcmp(wanted.data(), got.data(), whole) != 0) fail(row, "gapless unpack");
}

void measure_row(Row row, const Settings& settings) {
  MPI_Type_commit(&row.type.mpi);
  const layout::Datatype& type = row.type.gapless;
  const Offset bytes = type.size() * row.count;
  const Offset span = type.true_upper_bound + type.extent() * (row.count - 1);
  Buffer memory(static_cast<std::size_t>(span)), packed(static_cast<std::size_t>(bytes));
  Buffer other(static_cast<std::size_t>(bytes));
  const int packed_bytes = static_cast<int>(bytes);
  for (const Direction direction : {Direction::pack, Direction::unpack}) {
    const bool packs = direction == Direction::pack;
    const Job job{type.layout.get(), {row.count, type.extent()}, 0, bytes, direction,
                  memory.data.get(), packed.data.get()};
    verify(row, span, bytes, job);
    const auto mpi = [&] {
      int position = 0;
      if (packs) {
        MPI_Pack(memory.data.get(), row.count, row.type.mpi, packed.data.get(), packed_bytes, &position, MPI_COMM_SELF);
      } else {
        MPI_Unpack(packed.data.get(), packed_bytes, &position, memory.data.get(), row.count, row.type.mpi,
                   MPI_COMM_SELF);
      }
    };
    std::vector<gapless::bench::Timing> timings =
        gapless::bench::measure({{"gapless", [&] { host::run(job); }},
                                 {"mpi", mpi},
                                 {"loop", [&] { row.loop(memory.data.get(), packed.data.get(), direction); }}},
                                settings.samples, settings.sample_seconds);
    // Apart from the others: it touches memory of its own, which would push theirs out of the caches.
    timings.push_back(gapless::bench::measure(
        {{"memcpy", [&] { std::memcpy(other.data.get(), packed.data.get(), static_cast<std::size_t>(bytes)); }}},
        settings.samples, settings.sample_seconds)[0]);
    std::printf("{\"layout\": \"%s\", \"direction\": \"%s\", \"bytes\": %lld", row.name.c_str(),
                packs ? "pack" : "unpack", static_cast<long long>(bytes));
    const char* names[] = {"gapless", "mpi", "loop", "memcpy"};
    for (std::size_t i = 0; i < timings.size(); ++i) {
      std::printf(", \"%s\": {\"median\": %.6g, \"minimum\": %.6g}", names[i], timings[i].median, timings[i].minimum);
    }
    std::printf("}\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--only=")) settings.only = argv[i] + 7;
    if (argument.starts_with("--samples=")) settings.samples = std::atoi(argv[i] + 10);
    if (argument.starts_with("--microseconds=")) settings.sample_seconds = 1e-6 * std::atoi(argv[i] + 15);
  }
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  *std::strpbrk(version, "\n,") = '\0';
  for (char* c = version; *c; ++c) {
    if (*c == '\t') *c = ' ';
  }
  std::printf("{\"library\": \"%s\", \"engine\": \"%s\"}\n", version, std::string(host::implementation()).c_str());
  for (const Row& row : make_table()) {
    if (row.name.find(settings.only) != std::string::npos) measure_row(row, settings);
  }
  MPI_Finalize();
}
