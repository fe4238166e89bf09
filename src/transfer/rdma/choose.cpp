// The schemes by their names, the choice of a message's scheme by the least predicted time, and the length of a
// message's segments.
#include <algorithm>
#include <cmath>

#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma {

const char* name(Scheme scheme) noexcept {
  constexpr const char* names[] = {"pipelined", "gather-write", "scatter-read", "multi-write"};
  return names[static_cast<std::size_t>(scheme)];
}

unsigned schemes_of(const Memory& memory, Side side) noexcept {
  if (memory.region == nullptr) return ~0u;
  const auto bit = [](Scheme scheme) { return 1u << static_cast<unsigned>(scheme); };
  // A sender gathers contiguous memory as one piece, and packs nothing.
  return side == Side::sender ? ~bit(Scheme::scatter_read) : bit(Scheme::multi_write);
}

const Base& of(Scheme scheme) noexcept {
  switch (scheme) {
    case Scheme::gather_write:
      return gather_write;
    case Scheme::scatter_read:
      return scatter_read;
    case Scheme::multi_write:
      return multi_write;
    default:
      return pipelined;
  }
}

std::uint64_t segment_bytes_for(std::uint64_t bytes, std::uint64_t most, const model::FabricProfile& profile) noexcept {
  constexpr std::uint64_t page = 4096, one_segment = 16 << 10;
  constexpr double most_segments = 8;
  if (bytes < one_segment) return std::min(most, std::max<std::uint64_t>(bytes, 1));
  const double count = std::min(model::best_segments(profile, static_cast<double>(bytes)), most_segments);
  const auto part = static_cast<std::uint64_t>(static_cast<double>(bytes) / std::round(count));
  return std::min(most, std::max((part + page - 1) / page * page, 2 * page));
}

model::FabricMessage message_of(const Ends& ends) noexcept {
  const auto side = [](const Blocks& blocks) {
    return model::FabricSide{static_cast<double>(blocks.count), static_cast<double>(blocks.reach)};
  };
  return {.bytes = static_cast<double>(ends.sender.bytes),
          .sender = side(ends.sender),
          .receiver = side(ends.receiver),
          .segment_bytes = static_cast<double>(ends.segment_bytes),
          .operation_bytes = static_cast<double>(ends.limits.operation_bytes),
          .gather_entries = static_cast<double>(ends.limits.gather_entries),
          .scatter_entries = static_cast<double>(ends.limits.scatter_entries),
          .registers_each = !ends.limits.follows_mappings,
          .is_ordered = ends.limits.is_ordered};
}

Scheme choose(const Ends& ends, const model::FabricProfile& profile, unsigned allowed) noexcept {
  Scheme best = Scheme::pipelined;
  double least_ns = -1;
  for (std::size_t i = 0; i < scheme_count; ++i) {
    const auto scheme = static_cast<Scheme>(i);
    if ((allowed >> i & 1) == 0 || !of(scheme).applies(ends)) continue;
    const double ns = of(scheme).predict_ns(ends, profile);
    if (least_ns >= 0 && ns >= least_ns) continue;
    least_ns = ns;
    best = scheme;
  }
  return best;
}

std::optional<Scheme> choose_beside_packed(const Ends& ends, const model::FabricProfile& profile) noexcept {
  const Scheme best = choose(ends, profile);
  const double packed_ns = model::fabric_packed_ns(profile, message_of(ends));
  const bool is_sooner = of(best).applies(ends) && of(best).predict_ns(ends, profile) < packed_ns;
  return is_sooner ? std::optional(best) : std::nullopt;
}

bool is_sooner_than_others(const Ends& ends, const model::FabricProfile& profile, double others_ns) noexcept {
  const bool are_measured = std::isfinite(others_ns) && profile.handshake_ns > 0;
  if (!are_measured) return choose_beside_packed(ends, profile).has_value();
  const Base& best = of(choose(ends, profile));
  return best.applies(ends) && profile.handshake_ns + best.predict_ns(ends, profile) < others_ns;
}

}  // namespace gapless::transfer::rdma
