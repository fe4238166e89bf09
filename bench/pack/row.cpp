// How one row is measured: gapless, the kernels written by hand, the vendor's calls and the peers take turns on the
// same bytes, each is verified first, and the row is printed as a line of JSON.
#include <chrono>
#include <cinttypes>
#include <cstdio>

#include "contestants/hand.hpp"
#include "contestants/peer.hpp"
#include "contestants/vendor.hpp"
#include "gpu.hpp"
#include "tables/tables.hpp"

namespace gapless::bench {
namespace {

double gigabytes_a_second(std::int64_t bytes, double seconds) { return static_cast<double>(bytes) / seconds / 1e9; }

/// Seconds of one call that is waited for.
double seconds_of_call(const Contestant& contestant, const Spot& spot) {
  const Stream stream;
  const auto start = std::chrono::steady_clock::now();
  contestant.issue(spot, GAPLESS_PACK, stream);
  stream.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Some libraries walk lists once an element, and copy nests block by block: beyond this a call can take minutes.
bool is_short_enough(const Workload& work) {
  if (work.family == "2-D" || work.family == "contiguous") return true;
  const bool nest = std::holds_alternative<Box>(work.hand) && work.family != "list of a vector";
  const std::size_t most = nest ? 131072 : work.family == "struct" ? 1024 : 16384;
  return work.blocks.offsets.size() <= most;
}

constexpr double slowest_call = 0.02;

}  // namespace

void print(const Row& row) {
  std::printf("{\"table\": \"%s\", \"case\": {", row.table.c_str());
  for (const auto& [key, value] : row.labels) std::printf("\"%s\": \"%s\", ", key.c_str(), value.c_str());
  std::printf("\"bytes\": %" PRId64 "}, \"value\": %.4g, \"unit\": \"%s\", \"bound\": ", row.bytes, row.value,
              row.unit);
  row.bound > 0 ? std::printf("%.4g", row.bound) : std::printf("null");
  std::printf(", \"peers\": {");
  const char* comma = "";
  for (const auto& [name, value] : row.peers) {
    std::printf("%s\"%s\": %.4g", comma, name.c_str(), value);
    comma = ", ";
  }
  std::printf("}, \"note\": \"%s\"}\n", row.note.c_str());
  std::fflush(stdout);
}

const char* name_of(gapless_direction direction) { return direction == GAPLESS_PACK ? "pack" : "unpack"; }

void set_times(Row& row, const std::vector<WaitedCall>& calls, const std::vector<double>& seconds) {
  row.value = seconds[0] * 1e6;
  row.unit = "us";
  for (std::size_t i = 1; i < seconds.size(); ++i) row.peers.emplace_back(calls[i].name, seconds[i] * 1e6);
}

Contestant gapless_calls(const Workload& work) {
  const gapless_type* type = work.type.get();
  const std::int64_t count = work.count, bytes = work.packed_bytes();
  return {"gapless", [=](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
            check(direction == GAPLESS_PACK ? gapless_pack(type, count, spot.memory, 0, bytes, spot.packed, stream)
                                            : gapless_unpack(type, count, spot.memory, 0, bytes, spot.packed, stream),
                  "gapless");
          }};
}

std::vector<Contestant> right_peers(const Setting& setting, const Workload& work, const std::vector<Spot>& spots) {
  std::vector<Contestant> right;
  if (!is_short_enough(work)) return right;
  for (Contestant& peer : peers(work)) {
    const std::string fault = setting.arena.faults(work, {&peer}, spots)[0];
    if (!fault.empty()) {
      std::fprintf(stderr, "pack: %s %s of %s\n", peer.name.c_str(), fault.c_str(), work.name.c_str());
    } else if (const double seconds = seconds_of_call(peer, spots[0]); seconds > slowest_call) {
      std::fprintf(stderr, "pack: %s takes %.3g s for %s\n", peer.name.c_str(), seconds, work.name.c_str());
    } else {
      right.push_back(std::move(peer));
    }
  }
  return right;
}

void measure_directions(const Setting& setting, const std::string& table, const Workload& work,
                        const std::vector<Spot>& spots, bool with_vendor) {
  const Contestant mine = gapless_calls(work);
  const std::vector<Contestant> kernels = hand_written(work);
  std::vector<Contestant> calls = with_vendor ? vendor_calls(work) : std::vector<Contestant>();
  std::vector<const Contestant*> all{&mine};
  for (const Contestant& contestant : kernels) all.push_back(&contestant);
  for (const Contestant& contestant : calls) all.push_back(&contestant);
  setting.arena.verify(work, all, spots);
  for (Contestant& peer : right_peers(setting, work, spots)) calls.push_back(std::move(peer));

  const std::int64_t bytes = work.packed_bytes(), traffic = work.traffic();
  const double copy_seconds = setting.arena.copy_seconds(traffic / 2, setting.effort);
  for (const gapless_direction direction : {GAPLESS_PACK, GAPLESS_UNPACK}) {
    const Contestant& best = kernels[fastest(kernels, spots, direction)];
    std::vector<const Contestant*> contestants{&mine, &best};
    for (const Contestant& contestant : calls) contestants.push_back(&contestant);
    const std::vector<double> seconds = gpu_seconds(contestants, spots, direction, setting.effort);
    Row row;
    row.table = table;
    row.labels = {{"family", work.family}, {"layout", work.name}, {"direction", name_of(direction)}};
    row.bytes = bytes;
    row.value = gigabytes_a_second(bytes, seconds[0]);
    row.bound = gigabytes_a_second(bytes, static_cast<double>(traffic) / setting.copy_bandwidth);
    row.peers = {{"copy of the same traffic", gigabytes_a_second(bytes, copy_seconds)},
                 {"hand-written kernel", gigabytes_a_second(bytes, seconds[1])}};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      row.peers.emplace_back(calls[i].name, gigabytes_a_second(bytes, seconds[2 + i]));
    }
    row.note = best.name;
    print(row);
  }
}

}  // namespace gapless::bench
