#include "mpi/requests/arrivals.hpp"

#include <algorithm>
#include <array>

namespace gapless::mpi::requests {
namespace {

enum class State : char { awaited, arrived, failed };

/// What one call of MPI_Waitsome is asked about: the library looks at each of them.
constexpr int most_at_once = 8;

/// Waits until some of the first `most_at_once` messages have arrived, and unpacks those. `awaited`: which requests,
/// of which those are taken out that need not be waited for any more. Returns the library's code.
int wait_for_some(Claims& claims, Statuses& statuses, MPI_Request* requests, int* awaited, int& count,
                  State* states) noexcept {
  const int asked = std::min(count, most_at_once);
  std::array<MPI_Request, most_at_once> handles;
  std::array<MPI_Status, most_at_once> filled;
  std::array<int, most_at_once> indices;
  filled.fill(ReceivedStatus::unset(nullptr));
  for (int k = 0; k < asked; ++k) handles[k] = requests[awaited[k]];
  int completed = 0;
  const int code = native.Waitsome(asked, handles.data(), &completed, indices.data(), filled.data());
  const bool in_statuses = tells_in_statuses(code);
  const bool are_none = completed == MPI_UNDEFINED || (code != MPI_SUCCESS && !in_statuses);
  for (int c = 0; !are_none && c < completed; ++c) {
    const int i = awaited[indices[c]];
    requests[i] = handles[indices[c]];
    statuses.take(i, filled[c], in_statuses);
    states[i] = in_statuses && filled[c].MPI_ERROR != MPI_SUCCESS ? State::failed : State::arrived;
    if (states[i] == State::arrived) claims.unpack(i, statuses);
  }
  // Of requests that are not active the library's Waitall tells, later.
  int* const end =
      std::remove_if(awaited, awaited + asked, [&](int i) { return are_none || states[i] != State::awaited; });
  std::copy(awaited + asked, awaited + count, end);
  count -= static_cast<int>(awaited + asked - end);
  return code;
}

}  // namespace

int wait_for_arrivals(Claims& claims, Statuses& statuses, int count, MPI_Request* requests) noexcept {
  Scratch<int> awaited(count);
  Scratch<State> states(count);
  Scratch<MPI_Status> others(count);
  const bool is_memory_there = awaited.is_there() && states.is_there() && others.is_there();
  int early = 0;
  for (int i = 0; is_memory_there && i < count; ++i) {
    if (claims.is_unpacked_early(i)) awaited[early++] = i;
  }
  if (early < 2) return native.Waitall(count, requests, statuses.get());

  int failure = MPI_SUCCESS;
  while (early > 0) {
    const int code = wait_for_some(claims, statuses, requests, awaited.data(), early, states.data());
    if (code != MPI_SUCCESS) failure = code;
  }
  // Those that have arrived are null or not active: of them the library says nothing more.
  std::copy_n(statuses.get(), count, others.data());
  const int code = native.Waitall(count, requests, others.data());
  const bool has_errors = tells_in_statuses(code);
  for (int i = 0; i < count; ++i) {
    if (states[i] == State::awaited) statuses.take(i, others[i], has_errors);
  }
  const int result = code != MPI_SUCCESS ? code : failure;
  for (int i = 0; tells_in_statuses(result) && i < count; ++i) {
    if (states[i] == State::arrived || (states[i] == State::awaited && !has_errors))
      statuses.set_library_error(i, MPI_SUCCESS);
  }
  return result;
}

}  // namespace gapless::mpi::requests
