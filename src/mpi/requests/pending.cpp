#include "mpi/requests/pending.hpp"

#include <type_traits>

#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::requests {

template <class Visit>
void Pending::for_sent(Visit visit) noexcept {
  if (auto* side = std::get_if<Sending<int>>(&side_)) visit(*side);
  if constexpr (!std::is_same_v<MPI_Count, int>) {
    if (auto* side = std::get_if<Sending<MPI_Count>>(&side_)) visit(*side);
  }
}

template <class Visit>
void Pending::for_received(Visit visit) noexcept {
  if (auto* side = std::get_if<Receiving<int>>(&side_)) visit(*side);
  if (auto* both = std::get_if<Exchange<int>>(&side_); both != nullptr && both->in.packs()) visit(both->in);
  if constexpr (!std::is_same_v<MPI_Count, int>) {
    if (auto* side = std::get_if<Receiving<MPI_Count>>(&side_)) visit(*side);
    if (auto* both = std::get_if<Exchange<MPI_Count>>(&side_); both != nullptr && both->in.packs()) visit(both->in);
  }
}

bool Pending::receives() noexcept {
  bool result = false;
  for_received([&](auto&) { result = true; });
  return result;
}

int Pending::finish(ReceivedStatus& status) noexcept {
  int code = MPI_SUCCESS;
  // A persistent request that is not started has an empty status, of any source.
  const bool arrived = status.is_set() && status.source() != MPI_ANY_SOURCE && !is_unpacked && !status.is_cancelled();
  for_received([&](auto& side) {
    if (arrived) code = side.unpack(status, communicator, function);
    is_unpacked = true;
  });
  status.deliver();
  return code;
}

int Pending::start() noexcept {
  int code = MPI_SUCCESS;
  is_unpacked = false;
  for_sent([&](auto& side) { code = side.start(function); });
  return code;
}

int Pending::raise(int code) const noexcept {
  return communicator == MPI_COMM_NULL ? raise_without_object(code) : raise_on_communicator(communicator, code);
}

}  // namespace gapless::mpi::requests
