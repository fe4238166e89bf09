// A blocking send of GPU memory, whose scheme is chosen by prediction and by what sends of its kind have taken in this
// run (model/corrections/correction.hpp). Receives are chosen by prediction alone: most of a receive's time is waiting
// for the sender. Sends of host memory are timed for the report, and tried together with the receives that they answer
// (host_trial.hpp).
#pragma once

#include <chrono>
#include <optional>

#include "transfer/message.hpp"

namespace gapless::transfer {

class CorrectedSend {
 public:
  using Clock = std::chrono::steady_clock;

  /// A send of a buffer for which `predicted` was chosen; `peer` tells destinations apart. Takes some ten nanoseconds;
  /// a thread's first send allocates the thread's table.
  CorrectedSend(const Buffer& buffer, Scheme predicted, std::uint64_t peer) noexcept;
  /// A send that goes by `scheme` in any case, and is timed for the report alone.
  CorrectedSend(const Buffer& buffer, Scheme scheme) noexcept;

  /// Replaces what the report predicts of such messages.
  void expect(double ns) noexcept { expected_ns_ = ns; }
  /// The scheme that is to be used.
  Scheme scheme() const noexcept { return scheme_; }
  /// The call has ended well. Its time is noted when the next send of the kind begins.
  void end() noexcept;
  /// The same, with given times: the call's own, and the time from its beginning to that of the next send. For tests.
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

/// Do measurements of this run correct predictions? As GAPLESS_MODEL says.
bool is_corrected() noexcept;
/// Replaces GAPLESS_MODEL. For tests.
void set_correction(bool is_on) noexcept;

}  // namespace gapless::transfer

/// set_correction() for tests of MPI programs. Returns the previous value.
extern "C" bool gapless_transfer_set_correction(bool is_on);
