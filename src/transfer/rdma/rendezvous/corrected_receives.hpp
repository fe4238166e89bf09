// Chooses the schemes of receives by a fabric by prediction, and by what messages of their kind have taken in this run
// (model/corrections/trials.hpp). A kind is a layout at the receiver, the sender's blocks, and the peer, so each pair
// of processes has trials of its own.
#pragma once

#include <array>
#include <cstdint>

#include "model/corrections/trials.hpp"
#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma {

/// Used by one thread at a time.
class CorrectedReceives {
 public:
  /// How one message goes.
  struct Turn {
    std::uint64_t key = 0;  ///< of the message's kind; 0: nothing is corrected
    Scheme scheme = Scheme::pipelined;
    double predicted_ns = 0;
    model::Trials::Turn trial;
    bool is_usual = true;  ///< no trial: the next best scheme may stand in for this one
  };

  explicit CorrectedReceives(bool is_on) noexcept : is_on_(is_on) {}

  /// The next message's turn, among the schemes that are `allowed` (bits by Scheme). `layout` is the receiver's.
  Turn next(const Ends& ends, const model::FabricProfile& profile, const void* layout, int rank,
            unsigned allowed) noexcept;
  /// Notes what a message has taken that went by its turn's scheme: since its beginning, or since the end of the
  /// message before it, whichever is later.
  void note(const Turn& turn, double ns) noexcept;

 private:
  struct Kind {
    std::uint64_t key = 0;
    unsigned allowed = 0;
    std::array<double, scheme_count> predicted_ns{};
    model::Trials trials{};
  };
  static_assert(scheme_count <= model::Trials::most_ways);

  static Kind begin(std::uint64_t key, const Ends& ends, const model::FabricProfile& profile,
                    unsigned allowed) noexcept;
  Kind& kind_of(std::uint64_t key) noexcept { return kinds_[(key >> 8) % kinds_.size()]; }

  bool is_on_;
  std::array<Kind, 64> kinds_{};  ///< kinds with the same index replace each other
};

}  // namespace gapless::transfer::rdma
