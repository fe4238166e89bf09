// The schemes of Wu et al., 2003 between two processes over one fabric: columns of a 128 x 4096 array of ints.
//
//   rdma FABRIC [ROUNDS [MESSAGES]]
//
// FABRIC is verbs, or a provider of libfabric. Prints a JSON object a row: latency (half a ping-pong), bandwidth (so
// many messages one after the other in each round), and the ablations of Wu et al., 2003, 8.4 to 8.6, each with what
// was posted, copied and registered for one message, by both sides together. Beside the schemes: contiguous memory of
// as many bytes, and packed, which is that with a pack before and an unpack after it, as users do it. Every row's bytes
// are verified.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "calibration.hpp"
#include "process.hpp"
#include "rows.hpp"

namespace gapless::bench {
namespace {

/// What is varied: Wu et al., 2003, 8.2 and 8.4 to 8.6.
struct Variant {
  const char* name;
  Options options;
  std::vector<std::pair<const char*, unsigned>> schemes;
};

std::vector<Variant> variants(const std::string& fabric, const Costs& costs) {
  std::vector<std::pair<const char*, unsigned>> all;
  for (const Scheme scheme : {Scheme::pipelined, Scheme::gather_write, Scheme::scatter_read, Scheme::multi_write}) {
    all.emplace_back(name(scheme), only(scheme));
  }
  auto with_others = all;
  with_others.emplace_back("chosen", ~0u);
  with_others.emplace_back("packed", only(Scheme::multi_write));
  with_others.emplace_back("contiguous", only(Scheme::multi_write));
  Options kept;
  const model::MeasuredFabric measured{fabric,        model::Pair::same_node, costs.operation_ns,
                                       costs.byte_ns, costs.notification_ns,  costs.copied_byte_ns,
                                       costs.overlap};
  kept.profile = model::fabric_profile(fabric, model::Pair::same_node, {&measured, 1});
  Options whole = kept, single = kept, worst = kept;
  kept.registrations.memory_stays = whole.registrations.memory_stays = single.registrations.memory_stays = true;
  whole.segment_unpack = false;
  single.list_posting = false;
  worst.registrations.regions = 0;
  return {{"usual", kept, with_others},
          {"no segment unpack", whole, {{"gather-write", only(Scheme::gather_write)}}},
          {"single posts", single, {{"multi-write", only(Scheme::multi_write)}}},
          {"new buffers", worst, all}};
}

void run(const std::string& fabric, const Variant& variant, Shared& shared, int rank, int rounds,
         std::uint32_t messages) {
  Process process(fabric, variant.options, shared, rank);
  Rows rows(process, fabric, rounds, messages);
  for (std::size_t columns = 1; columns <= 2048; columns *= 2) {
    std::vector<Case> cases;
    for (const auto& [scheme, allowed] : variant.schemes) cases.push_back({variant.name, columns, allowed, scheme});
    rows.measure(cases);
  }
}

}  // namespace
}  // namespace gapless::bench

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: rdma FABRIC [ROUNDS [MESSAGES]]\n");
    return 2;
  }
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 51;
  const int messages = count > 3 ? std::max(1, std::atoi(arguments[3])) : 10;
  using namespace gapless::bench;
  const std::string fabric = arguments[1];
  Costs costs{};
  const bool is_measured = in_two_processes(costs, [&](Shared& shared, int rank) {
    // As many segments as may be.
    Process process(fabric, variants(fabric, {1, 0.4, 1, 0.1, 1}).front().options, shared, rank);
    const Costs found = Calibration(process).costs();
    if (rank == 0) shared.costs = found;
  });
  if (!is_measured) return 1;
  std::fprintf(stderr,
               "rdma: over %s %.0f ns an operation, %.3f ns a byte, %.0f ns a notification, %.3f ns a byte copied, "
               "%.2f of that overlaps\n",
               fabric.c_str(), costs.operation_ns, costs.byte_ns, costs.notification_ns, costs.copied_byte_ns,
               costs.overlap);
  for (const Variant& variant : variants(fabric, costs)) {
    Costs unused{};
    const bool is_right = in_two_processes(unused, [&](Shared& shared, int rank) {
      run(fabric, variant, shared, rank, rounds, static_cast<std::uint32_t>(messages));
    });
    if (!is_right) return 1;
  }
}
