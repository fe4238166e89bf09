// A blocking send whose scheme is not only predicted: what sends of that kind have taken in this run has a say
// (model/corrections/correction.hpp). Receives are left to predictions, for their times are mostly those of waiting for
// the sender.
#pragma once

#include <chrono>
#include <optional>

#include "transfer/message.hpp"

namespace gapless::transfer {

class CorrectedSend {
 public:
  using Clock = std::chrono::steady_clock;

  /// A send of a buffer for which `predicted` was chosen; `peer` tells apart whom it goes to. Takes some ten
  /// nanoseconds; a thread's first one allocates the thread's table.
  CorrectedSend(const Buffer& buffer, Scheme predicted, std::uint64_t peer) noexcept;
  /// A send that goes by that scheme in any case, and is only reported.
  CorrectedSend(const Buffer& buffer, Scheme scheme) noexcept;

  /// Replaces what the report predicts of such messages.
  void expect(double ns) noexcept { expected_ns_ = ns; }
  /// The scheme that is to be used.
  Scheme scheme() const noexcept { return scheme_; }
  /// The call has ended well. What it took is noted when the next of its kind begins.
  void end() noexcept;
  /// The same with times that are not measured: its own, and that from its beginning to the next one's.
  void end(double ns, double until_next_ns) noexcept;

 private:
  void report(double ns) const noexcept;

  const Buffer& buffer_;
  std::uint64_t key_ = 0;
  Scheme scheme_;
  bool is_timed_ = false;  ///< for the correction
  bool is_reported_ = false;
  std::optional<double> expected_ns_;
  Clock::time_point begin_{};
};

/// Do measurements of this run have a say? As GAPLESS_MODEL says.
bool is_corrected() noexcept;
/// Replaces what GAPLESS_MODEL said. For tests.
void set_correction(bool is_on) noexcept;

}  // namespace gapless::transfer

/// The same, for tests of MPI programs. What was in force.
extern "C" bool gapless_transfer_set_correction(bool is_on);
