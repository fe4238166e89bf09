// Receives by a fabric whose scheme is not only predicted: what messages of that kind have taken in this run has a say
// (model/corrections/trials.hpp). A kind is a layout at the receiver, the sender's blocks, and the peer, so that each
// pair of processes finds out for itself.
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
    std::uint64_t key = 0;  ///< of its kind; 0: nothing is corrected
    Scheme scheme = Scheme::pipelined;
    double predicted_ns = 0;
    model::Trials::Turn trial;
    bool is_usual = true;  ///< as most of its kind go, so that the next best scheme may stand in for it
  };

  explicit CorrectedReceives(bool is_on) noexcept : is_on_(is_on) {}

  /// Of the schemes that are `allowed` (bits by Scheme). `layout` is the receiver's.
  Turn next(const Ends& ends, const model::FabricProfile& profile, const void* layout, int rank,
            unsigned allowed) noexcept;
  /// What that message took, if it was timed and went so: since its beginning, or since the message before it was over,
  /// whichever is later.
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
  std::array<Kind, 64> kinds_{};  ///< one gives way to another of the same place
};

}  // namespace gapless::transfer::rdma
