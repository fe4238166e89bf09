// The types of Jenkins et al., 2012 and 2014, from 64 bytes to 4 MiB packed, to the GPU and to host memory; blocks of
// every multiple of 4 bytes; faces of cubes.
#include "blocking.hpp"
#include "contestants/hand.hpp"
#include "contestants/vendor.hpp"
#include "gpu.hpp"
#include "tables/tables.hpp"
#include "wall.hpp"

namespace gapless::bench {
namespace {

using Size = std::int64_t;

/// Edges that are powers of two, grown in turn from the innermost: a box inside 64^4 floats.
Workload growing_box(Size bytes) {
  std::vector<Size> edges(4, 1);
  for (std::size_t i = 0, elements = 1; elements < static_cast<std::size_t>(bytes / 4); ++i, elements *= 2) {
    edges[3 - i % 4] *= 2;
  }
  return subarray("4-D", {64, 64, 64, 64}, edges, {0, 0, 0, 0}, 4);
}

std::vector<Workload> types_of_000(Size bytes) {
  std::vector<Workload> works;
  works.push_back(contiguous(bytes));
  works.push_back(vector(bytes / 8, 8, 512));
  if (bytes > 128) works.push_back(vector(bytes / 128, 128, 512));
  works.push_back(growing_box(bytes));
  works.push_back(vector_as_list(bytes / 8, 8, 512, true));
  works.push_back(vector_as_list(bytes / 8, 8, 512, false));
  works.push_back(particles((bytes + 16) / 17));
  return works;
}

/// Calls on the stream that are waited for, going round the spots from the one given.
WaitedCall waited(const Contestant& contestant, const std::vector<Spot>& spots, std::size_t first,
                  gapless_direction direction, const Stream& stream) {
  return {contestant.name, [&contestant, &spots, &stream, direction, next = first]() mutable {
            contestant.issue(spots[next++ % spots.size()], direction, stream);
            stream.wait();
          }};
}

/// Time until the packed bytes are there: gapless as an MPI call uses it, and everything else that can do it, on a
/// stream that is then waited for.
void measure_waited(const Setting& setting, const std::string& table, const Workload& work,
                    const std::vector<Spot>& spots, const char* destination) {
  const Contestant mine = blocking_calls(work);
  Contestant c_api = gapless_calls(work);
  c_api.name = "C API";
  const std::vector<Contestant> kernels = hand_written(work);
  const std::vector<Contestant> calls = vendor_calls(work);
  const Contestant same_bytes = copies(work.packed_bytes()).back();
  std::vector<const Contestant*> right{&mine, &c_api};
  for (const Contestant& contestant : calls) right.push_back(&contestant);
  const Contestant& kernel = kernels[fastest(kernels, spots, GAPLESS_PACK)];
  right.push_back(&kernel);
  setting.arena.verify(work, right, spots);

  const Stream stream;
  std::vector<WaitedCall> waiting{{mine.name, [&, next = std::size_t{0}]() mutable {
                                     mine.issue(spots[next++ % spots.size()], GAPLESS_PACK, nullptr);
                                   }}};
  // Each at its own place of the round, so that nobody finds in the cache what the one before him has read.
  const auto place = [&](std::size_t i) { return i * spots.size() / (right.size() + 1); };
  for (std::size_t i = 1; i < right.size(); ++i) {
    waiting.push_back(waited(*right[i], spots, place(i), GAPLESS_PACK, stream));
  }
  waiting.back().name = "hand-written kernel";
  waiting.push_back(waited(same_bytes, spots, place(right.size()), GAPLESS_PACK, stream));
  waiting.back().name = "cudaMemcpyAsync of as many bytes";
  const std::vector<double> seconds = wall_seconds(waiting, setting.quick ? 9 : 25);
  Row row;
  row.table = table;
  row.labels = {{"family", work.family}, {"layout", work.name}, {"direction", "pack"}, {"destination", destination}};
  row.bytes = work.packed_bytes();
  set_times(row, waiting, seconds);
  row.note = kernel.name;
  print(row);
}

void measure_to_both(const Setting& setting, const std::string& table, const Workload& work, const Memory& host) {
  measure_waited(setting, table, work, setting.arena.spots(work), "GPU");
  measure_waited(setting, table, work, setting.arena.spots_with(work, host), "host");
}

}  // namespace

void print_types(const Setting& setting) {
  const Memory host(std::size_t{64} << 20, Place::mapped_host);
  for (Size bytes = 64; bytes <= Size{4} << 20; bytes *= setting.quick ? 16 : 4) {
    for (const Workload& work : types_of_000(bytes)) measure_to_both(setting, "types", work, host);
  }
}

void print_types_on_gpu(const Setting& setting) {
  for (Size bytes = Size{64} << 10; bytes <= Size{4} << 20; bytes *= 4) {
    for (const Workload& work : types_of_000(bytes)) {
      measure_directions(setting, "types_on_gpu", work, setting.arena.spots(work), false);
    }
  }
}

void print_blocks_of_1024(const Setting& setting) {
  const Memory host(std::size_t{16} << 20, Place::mapped_host);
  for (Size length = 8; length <= 256; length += setting.quick ? 60 : 4) {
    measure_to_both(setting, "blocks_1024", vector(1024, length, 512), host);
  }
}

void print_faces(const Setting& setting) {
  for (const Size n : {64, 128, 256, 512}) {
    const std::pair<const char*, std::vector<Size>> faces[] = {
        {"X-Y face", {1, n, n}}, {"X-Z face", {n, 1, n}}, {"Y-Z face", {n, n, 1}}};
    for (const auto& [name, edges] : faces) {
      const Workload work = subarray(name, {n, n, n}, edges, {0, 0, 0}, 8);
      if (setting.arena.holds(work)) {
        measure_directions(setting, "faces", work, setting.arena.spots(work), !setting.quick);
      }
    }
  }
}

}  // namespace gapless::bench
