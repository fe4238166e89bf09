#include "mpi/requests/pending.hpp"

#include <type_traits>

#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::requests {

template <template <class> class Side, class Visit>
void Pending::visit(Visit visit) noexcept {
  if (auto* side = std::get_if<Side<int>>(&side_)) visit(*side);
  if constexpr (!std::is_same_v<MPI_Count, int>) {
    if (auto* side = std::get_if<Side<MPI_Count>>(&side_)) visit(*side);
  }
}

bool Pending::receives() noexcept {
  bool result = false;
  visit<Receiving>([&](auto&) { result = true; });
  visit<Exchange>([&](auto& both) { result = both.in.packs(); });
  return result;
}

int Pending::finish(ReceivedStatus& status) noexcept {
  int code = MPI_SUCCESS;
  // A persistent request that is not started has an empty status, of any source.
  const bool arrived = status.is_set() && status.source() != MPI_ANY_SOURCE && !status.is_cancelled();
  if (!is_unpacked) {
    visit<Receiving>([&](auto& side) {
      if (arrived) code = side.unpack(status, communicator, function);
    });
    visit<Exchange>([&](auto& both) {
      const bool has_arrived = arrived || (!exchanges_have_statuses && status.is_set());
      if (has_arrived && both.in.packs()) code = both.finish(status, communicator, function);
    });
  }
  is_unpacked = true;
  if (Partitions* message = partitions(); message != nullptr && status.is_set()) {
    const transfer::Result result = message->finish();
    if (result != transfer::Result::ok) code = gpu_failure(function, result);
  }
  status.deliver();
  return code;
}

void Pending::start_in(transfer::PackBatch& batch) noexcept {
  is_unpacked = false;
  visit<Sending>([&](auto& side) { side.pack_in(batch); });
  if (Partitions* message = partitions()) message->start();
}

int Pending::started(transfer::Result result) noexcept {
  if (result != transfer::Result::ok) return gpu_failure(function, result);
  visit<Sending>([](auto& side) { side.is_packed(); });
  return MPI_SUCCESS;
}

int Pending::raise(int code) const noexcept {
  return communicator == MPI_COMM_NULL ? raise_without_object(code) : raise_on_communicator(communicator, code);
}

}  // namespace gapless::mpi::requests
