// How fast do the kernels pack, against the traffic that cannot be avoided? Prints one JSON line a case: GB/s of packed
// bytes, and the bound: (64-byte lines touched + packed bytes) at the speed of a large copy in the same run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "layout/canonical.hpp"
#include "layout/cursor.hpp"

namespace {

using namespace gapless;
using device::MemoryKind;
using layout::LayoutPointer;
using layout::Offset;
using pack::Direction;
using pack::Job;

device::Runtime* gpu = nullptr;
void* stream = nullptr;

/// Seconds a call, median of rounds of `calls` calls followed by one synchronisation.
template <class Issue>
double seconds(int calls, const Issue& issue) {
  std::vector<double> rounds;
  for (int round = 0; round < 8; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) issue();
    gpu->synchronize(0, stream);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (round > 0) rounds.push_back(spent.count() / calls);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
  return rounds[3];
}

double lines_touched(const layout::Layout& layout) {
  double lines = 0;
  Offset last = -1;
  layout::Cursor cursor(layout, {1, 0}, 0, layout.size);
  for (layout::Segment run; cursor.next(run);) {
    const Offset first = std::max(run.offset / 64, last + 1);
    last = std::max(last, (run.offset + run.length - 1) / 64);
    lines += static_cast<double>(std::max<Offset>(0, last - first + 1));
  }
  return lines;
}

void measure(const std::string& name, const LayoutPointer& layout, char* memory, char* packed, double copy_bandwidth) {
  Job job{layout.get(), {1, 0}, 0, layout->size, Direction::pack, memory, packed};
  const auto bytes = static_cast<double>(layout->size);
  const double bound = bytes / ((lines_touched(*layout) * 64 + bytes) / copy_bandwidth) / 1e9;
  for (const auto direction : {Direction::pack, Direction::unpack}) {
    job.direction = direction;
    if (gpu->run({&job, 1}, 0, stream) != device::Status::ok) {
      std::fprintf(stderr, "device_pack: %s: %s\n", name.c_str(), gpu->last_error());
      return;
    }
    const double value = bytes / seconds(20, [&] { gpu->run({&job, 1}, 0, stream); }) / 1e9;
    std::printf(
        "{\"benchmark\": \"device_pack\", \"case\": {\"layout\": \"%s\", \"direction\": \"%s\", \"bytes\": %.0f}, "
        "\"value\": %.1f, \"unit\": \"GB/s\", \"bound\": %.1f, \"ratio\": %.2f}\n",
        name.c_str(), direction == Direction::pack ? "pack" : "unpack", bytes, value, bound, value / bound);
  }
}

LayoutPointer rows(Offset length, Offset stride, Offset bytes) {
  return layout::repeat(layout::block(0, length), bytes / length, stride);
}

/// Blocks in random order at multiples of `stride`: no two neighbours in memory follow each other.
LayoutPointer scattered(Offset length, Offset stride, Offset count) {
  std::vector<Offset> offsets(static_cast<std::size_t>(count));
  for (Offset i = 0; i < count; ++i)
    offsets[i] = i * stride + (i * 7919 % 3) * length % (stride - length + 1) / length * length;
  return layout::index(layout::block(0, length), offsets);
}

/// Lengths and gaps at random, so that no repetition is found in them.
LayoutPointer ragged(Offset longest, Offset count) {
  std::mt19937 random(1);
  std::vector<layout::Segment> runs;
  Offset at = 0;
  for (Offset i = 0; i < count; ++i) {
    const Offset length = (1 + random() % (longest / 4)) * 4;
    runs.push_back({at, length});
    at += length + (1 + random() % 4) * 4;
  }
  return layout::segments(runs);
}

/// Three fields of differing lengths in each of `count` records.
LayoutPointer records(Offset count) {
  const LayoutPointer fields[] = {layout::block(0, 8), layout::block(16, 12), layout::block(40, 4)};
  return layout::repeat(layout::concatenate(fields), count, 48);
}

}  // namespace

int main() {
  gpu = device::runtime();
  if (gpu == nullptr) {
    std::fprintf(stderr, "device_pack: %s\n", device::why_unavailable().c_str());
    return 1;
  }
  stream = gpu->stream(0);
  constexpr std::size_t arena = std::size_t{4} << 30, packed_size = std::size_t{256} << 20;
  void *memory = nullptr, *packed = nullptr;
  if (gpu->allocate(MemoryKind::device, 0, arena, &memory) != device::Status::ok ||
      gpu->allocate(MemoryKind::device, 0, packed_size, &packed) != device::Status::ok) {
    std::fprintf(stderr, "device_pack: %s\n", gpu->last_error());
    return 1;
  }
  const double half = arena / 2;
  const double copy =
      2 * half / seconds(5, [&] { gpu->copy(memory, static_cast<char*>(memory) + arena / 2, arena / 2, 0, stream); });
  std::printf(
      "{\"benchmark\": \"device_pack\", \"case\": {\"layout\": \"copy, read + write\"}, \"value\": %.1f, \"unit\": "
      "\"GB/s\"}\n",
      copy / 1e9);
  auto* const m = static_cast<char*>(memory);
  auto* const p = static_cast<char*>(packed);
  const Offset size = Offset{64} << 20;
  for (const Offset length : {4, 8, 12, 16, 20, 32, 64, 100, 128, 512, 4096}) {
    measure("vector, " + std::to_string(length) + " B every 512 B",
            rows(length, length < 512 ? 512 : 2 * length, (length < 16 ? size / 4 : size) / length * length), m, p,
            copy);
  }
  const auto face = layout::repeat(rows(8, 512 * 8, 512 * 8), 512, 512 * 512 * 8);
  measure("Y-Z face of 512^3 doubles", face, m, p, copy);
  measure("X-Z face of 512^3 doubles", layout::repeat(layout::block(0, 4096), 512, 512 * 512 * 8), m, p, copy);
  for (const Offset length : {8, 128}) {
    measure("index, " + std::to_string(length) + " B in 4x", scattered(length, 4 * length, size / length / 2), m, p,
            copy);
  }
  measure("ragged to 32 B", ragged(32, 2000000), m, p, copy);
  measure("ragged to 512 B", ragged(512, 200000), m, p, copy);
  const LayoutPointer fields[] = {layout::block(0, 8), layout::block(8, 8), layout::block(16, 1)};
  measure("struct {double, 2 int, char} x 1e6", layout::repeat(layout::concatenate(fields), 1000000, 24), m, p, copy);
  measure("struct of 8, 12 and 4 B in 48 B x 1e6", records(1000000), m, p, copy);
  const auto rows_of_two = layout::repeat(
      layout::concatenate(std::vector<LayoutPointer>{rows(8, 32, 800), layout::shift(rows(4, 16, 400), 4096)}), 20000,
      8192);
  measure("struct of two strided fields x 20000", rows_of_two, m, p, copy);
  for (const Offset small : {1024, 65536}) {
    const auto layout = rows(8, 64, small);
    const Job job{layout.get(), {1, 0}, 0, layout->size, Direction::pack, m, p};
    const double each = seconds(1, [&] { gpu->run({&job, 1}, 0, stream); });
    std::printf(
        "{\"benchmark\": \"device_pack\", \"case\": {\"layout\": \"run and synchronise, %lld B\"}, \"value\": %.2f, "
        "\"unit\": \"us\"}\n",
        static_cast<long long>(small), each * 1e6);
  }
  return 0;
}
