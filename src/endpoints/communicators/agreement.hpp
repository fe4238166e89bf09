// What some endpoints of a process do together once each of them has arrived, such as making a communicator: the last
// to arrive does it for all, and the others drive their messages meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "endpoints/delivery/progress.hpp"
#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints {

struct Agreement {
  Agreement() = default;
  ~Agreement();  ///< what was made and not claimed ends
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  int arrived = 0;
  int code = MPI_SUCCESS;
  int number = 0;                                   ///< what they agree on
  std::vector<std::shared_ptr<Communicator>> made;  ///< null entries: no endpoint of this process is in them
  std::thread worker;                               ///< that carries it out, if no endpoint waits for it
  std::atomic<bool> done{false};
};

/// Tells agreements of one communicator apart that are under way at a time.
using AgreementKey = std::vector<std::uint64_t>;

/// The key of the next agreement of all endpoints of the communicator.
inline AgreementKey next_turn(Endpoint& endpoint) { return {endpoint.agreements++}; }

/// Arrives. `is_last`: the `expected`-th to do so, which has to carry it out.
std::shared_ptr<Agreement> arrive_at_agreement(Agreements& all, const AgreementKey& key, int expected, bool& is_last);

/// Does what was agreed on, `work(agreement)`. Where memory ends there, the code says so.
template <class Work>
void carry_out(Agreement& agreement, Work work) noexcept {
  try {
    work(agreement);
  } catch (const std::exception&) {
    agreement.code = MPI_ERR_NO_MEM;
  }
  agreement.done.store(true, std::memory_order_release);
}

/// `work(agreement)`, which may wait in the library, is done by one endpoint; returns when it is. The others `drive()`
/// messages.
template <class Drive, class Work>
std::shared_ptr<Agreement> agree_driving(Drive drive, Agreements& all, const AgreementKey& key, int expected,
                                         Work work) {
  bool is_last = false;
  const auto agreement = arrive_at_agreement(all, key, expected, is_last);
  if (!is_last) {
    repeat_until(drive, [&] { return agreement->done.load(std::memory_order_acquire); });
    return agreement;
  }
  const InLibrary meanwhile;
  carry_out(*agreement, work);
  return agreement;
}

template <class Work>
std::shared_ptr<Agreement> agree(Endpoint& endpoint, Agreements& all, const AgreementKey& key, int expected,
                                 Work work) {
  return agree_driving([&] { progress(endpoint); }, all, key, expected, work);
}

/// An agreement of all endpoints of the communicator in this process.
template <class Work>
std::shared_ptr<Agreement> agree(Endpoint& endpoint, Work work) {
  Communicator& communicator = *endpoint.communicator;
  return agree(endpoint, communicator.agreements, next_turn(endpoint), communicator.local_count(), work);
}

}  // namespace gapless::mpi::endpoints
