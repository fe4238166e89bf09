#include "endpoints/communicators/meeting.hpp"

#include <algorithm>

#include "endpoints/communicators/assembly.hpp"

namespace gapless::mpi::endpoints {

Meeting::~Meeting() {
  if (worker.joinable()) worker.join();
  for (const auto& communicator : made) {
    if (communicator != nullptr) give_up(*communicator);
  }
}

std::shared_ptr<Meeting> arrive_at_meeting(Meetings& all, const MeetingKey& key, int expected, int refused,
                                           bool& is_last) {
  const std::lock_guard lock(all.mutex);
  auto& begun = all.begun;
  auto found = std::find_if(begun.begin(), begun.end(), [&](const auto& entry) { return entry.first == key; });
  if (found == begun.end()) {
    begun.emplace_back(key, std::make_shared<Meeting>());
    found = begun.end() - 1;
  }
  auto meeting = found->second;
  if (refused != MPI_SUCCESS) meeting->refused = refused;
  is_last = ++meeting->arrived == expected;
  if (is_last) begun.erase(found);
  return meeting;
}

}  // namespace gapless::mpi::endpoints
