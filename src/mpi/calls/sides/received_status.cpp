#include "mpi/calls/sides/received_status.hpp"

#include "mpi/table/native.hpp"

namespace gapless::mpi {

std::size_t ReceivedStatus::bytes() const noexcept {
  MPI_Count count = 0;
  if (!is_set() || native.Get_elements_x(&own_, MPI_BYTE, &count) != MPI_SUCCESS || count < 0) return 0;
  return static_cast<std::size_t>(count);
}

bool ReceivedStatus::is_cancelled() const noexcept {
  int flag = 0;
  return native.Test_cancelled(&own_, &flag) == MPI_SUCCESS && flag != 0;
}

void ReceivedStatus::set_bytes(std::size_t bytes) noexcept {
  native.Status_set_elements_x(&own_, MPI_BYTE, static_cast<MPI_Count>(bytes));
}

}  // namespace gapless::mpi
