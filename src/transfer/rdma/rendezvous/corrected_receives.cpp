#include "transfer/rdma/rendezvous/corrected_receives.hpp"

#include <limits>

#include "base/hash.hpp"

namespace gapless::transfer::rdma {
namespace {

/// Never 0. A layout may get the address of one that has been freed; the blocks mostly tell the two apart.
std::uint64_t key_of(const Ends& ends, const void* layout, int rank) noexcept {
  std::uint64_t key = mix(1, reinterpret_cast<std::uintptr_t>(layout));
  for (const Blocks& blocks : {ends.sender, ends.receiver}) key = mix(mix(key, blocks.bytes), blocks.count);
  return mix(key, static_cast<std::uint64_t>(rank)) | 1;
}

}  // namespace

CorrectedReceives::Turn CorrectedReceives::next(const Ends& ends, const model::FabricProfile& profile,
                                                const void* layout, int rank, unsigned allowed) noexcept {
  constexpr unsigned all = (1u << scheme_count) - 1;
  allowed &= all;
  Turn turn;
  if (!is_on_ || (allowed & (allowed - 1)) == 0) {
    turn.scheme = choose(ends, profile, allowed);
    turn.predicted_ns = of(turn.scheme).predict_ns(ends, profile);
    return turn;
  }
  turn.key = key_of(ends, layout, rank);
  Kind& kind = kind_of(turn.key);
  if (kind.key != turn.key || kind.allowed != allowed) kind = begin(turn.key, ends, profile, allowed);
  turn.trial = kind.trials.next();
  turn.scheme = static_cast<Scheme>(turn.trial.way);
  turn.is_usual = turn.trial.way == kind.trials.in_use();
  turn.predicted_ns = kind.predicted_ns[turn.trial.way];
  return turn;
}

CorrectedReceives::Kind CorrectedReceives::begin(std::uint64_t key, const Ends& ends,
                                                 const model::FabricProfile& profile, unsigned allowed) noexcept {
  Kind kind{.key = key, .allowed = allowed};
  for (std::size_t i = 0; i < scheme_count; ++i) {
    const Base& scheme = of(static_cast<Scheme>(i));
    const bool is_there = (allowed >> i & 1) != 0 && scheme.applies(ends);
    kind.predicted_ns[i] = is_there ? scheme.predict_ns(ends, profile) : std::numeric_limits<double>::infinity();
  }
  kind.trials = model::Trials(kind.predicted_ns);
  return kind;
}

void CorrectedReceives::note(const Turn& turn, double ns) noexcept {
  if (turn.key == 0 || !turn.trial.is_timed) return;
  Kind& kind = kind_of(turn.key);
  if (kind.key == turn.key) kind.trials.note(turn.trial, static_cast<float>(ns));
}

}  // namespace gapless::transfer::rdma
