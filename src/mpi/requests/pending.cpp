#include "mpi/requests/pending.hpp"

#include <type_traits>

#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::requests {

int Pending::finish(ReceivedStatus& status) noexcept {
  int code = MPI_SUCCESS;
  const bool arrived = status.is_set() && !is_unpacked && !status.is_cancelled();
  const auto receive = [&](auto& side) {
    if (arrived) code = side.unpack(status, communicator, function);
    is_unpacked = true;
  };
  if (auto* side = std::get_if<Receiving<int>>(&side_)) receive(*side);
  if constexpr (!std::is_same_v<MPI_Count, int>) {
    if (auto* side = std::get_if<Receiving<MPI_Count>>(&side_)) receive(*side);
  }
  if (auto* work = std::get_if<std::unique_ptr<Work>>(&side_)) {
    if (!is_unpacked) code = (*work)->finish(status);
    is_unpacked = true;
  }
  status.deliver();
  return code;
}

int Pending::start() noexcept {
  is_unpacked = false;
  auto* work = std::get_if<std::unique_ptr<Work>>(&side_);
  return work != nullptr ? (*work)->start() : MPI_SUCCESS;
}

}  // namespace gapless::mpi::requests
