#include "transfer/rdma/rendezvous/corrected_receives.hpp"

namespace gapless::transfer::rdma {
namespace {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32);
}

/// Never 0. A layout's address may be another layout's later, which the blocks mostly tell.
std::uint64_t key_of(const Ends& ends, const void* layout, int rank) noexcept {
  std::uint64_t key = mix(1, reinterpret_cast<std::uintptr_t>(layout));
  for (const Blocks& blocks : {ends.sender, ends.receiver}) key = mix(mix(key, blocks.bytes), blocks.count);
  return mix(key, static_cast<std::uint64_t>(rank)) | 1;
}

constexpr unsigned bit(Scheme scheme) noexcept { return 1u << static_cast<unsigned>(scheme); }

}  // namespace

CorrectedReceives::Turn CorrectedReceives::next(const Ends& ends, const model::FabricProfile& profile,
                                                const void* layout, int rank, unsigned allowed) noexcept {
  constexpr unsigned all = (1u << scheme_count) - 1;
  Turn turn;
  turn.scheme = choose(ends, profile, allowed);
  const unsigned others = allowed & all & ~bit(turn.scheme);
  if (is_on_ && others != 0) {
    turn.key = key_of(ends, layout, rank);
    Kind& kind = kind_of(turn.key);
    if (kind.key != turn.key || kind.predicted != turn.scheme) {
      kind = {.key = turn.key, .predicted = turn.scheme, .other = choose(ends, profile, others)};
    }
    const model::Correction::Turn corrected = kind.correction.next();
    turn.way = corrected.way;
    turn.is_timed = corrected.is_timed;
    if (turn.way == model::Correction::Way::other) turn.scheme = kind.other;
  }
  turn.predicted_ns = of(turn.scheme).predict_ns(ends, profile);
  return turn;
}

void CorrectedReceives::note(const Turn& turn, double ns) noexcept {
  if (!turn.is_timed) return;
  Kind& kind = kind_of(turn.key);
  if (kind.key == turn.key) kind.correction.note(turn.way, static_cast<float>(ns));
}

}  // namespace gapless::transfer::rdma
