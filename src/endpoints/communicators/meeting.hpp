// A meeting: work that some endpoints of a process do together, such as making a communicator. The last endpoint to
// arrive does the work for all, and the others drive their messages meanwhile.
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

struct Meeting {
  Meeting() = default;
  ~Meeting();  ///< ends communicators that no endpoint has claimed
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  int arrived = 0;
  int refused = MPI_SUCCESS;  ///< the code of an endpoint that has failed before it arrived
  int code = MPI_SUCCESS;
  int number = 0;                                   ///< the number that they agree on
  std::vector<std::shared_ptr<Communicator>> made;  ///< null entries: no endpoint of this process is in them
  std::atomic<int> heard{0};                        ///< endpoints that know that all of other processes have called
  std::thread worker;                               ///< does the work, if no endpoint waits for the meeting
  std::atomic<bool> done{false};
};

/// Tells meetings of one communicator apart that are under way at a time.
using MeetingKey = std::vector<std::uint64_t>;

/// The key of the next meeting of all endpoints of the communicator.
inline MeetingKey next_turn(Endpoint& endpoint) { return {endpoint.meetings++}; }

/// Has an endpoint arrive. `is_last`: the endpoint is the `expected`-th to arrive, and has to carry out the work.
/// `refused`: what of it has failed before, which the work is told of; or MPI_SUCCESS.
std::shared_ptr<Meeting> arrive_at_meeting(Meetings& all, const MeetingKey& key, int expected, int refused,
                                           bool& is_last);

/// Carries out the work, `work(meeting)`. Where there is no memory for the work, the meeting's code says so.
template <class Work>
void carry_out(Meeting& meeting, Work work) noexcept {
  try {
    work(meeting);
  } catch (const std::exception&) {
    meeting.code = MPI_ERR_NO_MEM;
  }
  meeting.done.store(true, std::memory_order_release);
}

/// One endpoint does `work(meeting)`, which may wait in the library; the others `drive()` messages. Returns when the
/// work is done.
template <class Drive, class Work>
std::shared_ptr<Meeting> meet_driving(Drive drive, Meetings& all, const MeetingKey& key, int expected, int refused,
                                      Work work) {
  bool is_last = false;
  const auto meeting = arrive_at_meeting(all, key, expected, refused, is_last);
  if (!is_last) {
    repeat_until(drive, [&] { return meeting->done.load(std::memory_order_acquire); });
    return meeting;
  }
  const InLibrary meanwhile;
  carry_out(*meeting, work);
  return meeting;
}

template <class Work>
std::shared_ptr<Meeting> meet(Endpoint& endpoint, Meetings& all, const MeetingKey& key, int expected, int refused,
                              Work work) {
  return meet_driving([&] { progress(endpoint); }, all, key, expected, refused, work);
}

/// A meeting of all endpoints of the communicator in this process.
template <class Work>
std::shared_ptr<Meeting> meet(Endpoint& endpoint, int refused, Work work) {
  Communicator& communicator = *endpoint.communicator;
  return meet(endpoint, communicator.meetings, next_turn(endpoint), communicator.local_count(), refused, work);
}

}  // namespace gapless::mpi::endpoints
