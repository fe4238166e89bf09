#include "mpi/calls/by_messages/messages.hpp"

#include <cstdint>
#include <limits>

#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi::by_messages {
namespace {

constexpr int tag = 0;

bool fits(MPI_Count count) noexcept { return count <= std::numeric_limits<int>::max(); }

}  // namespace

bool is_empty(const Part& part) noexcept {
  return part.count == 0 || (runtime::is_usable(part.datatype) && runtime::size_of(part.datatype) == 0);
}

Messages::~Messages() {
  for (MPI_Request& request : requests_) {
    if (request == MPI_REQUEST_NULL) continue;
    entry::Cancel(&request);
    entry::Request_free(&request);
  }
}

std::byte* Messages::in_place_of(const Part& part, int& bytes) {
  if (!runtime::is_usable(part.datatype)) return nullptr;
  const MPI_Count size = runtime::size_of(part.datatype) * part.count;
  if (size <= 0 || !fits(size)) return nullptr;
  bytes = static_cast<int>(size);
  return placeholders_.emplace_back().reserve(0, static_cast<std::intptr_t>(size));
}

int Messages::send(const Part& part, int peer) {
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  int code = MPI_ERR_COUNT, bytes = 0;
  if (fits(part.count)) {
    code = entry::Isend(part.memory, static_cast<int>(part.count), part.datatype, peer, tag, lane_, &request);
  } else {
    GAPLESS_IF_DECLARED(Isend_c,
                        code = entry::Isend_c(part.memory, part.count, part.datatype, peer, tag, lane_, &request);)
  }
  if (code == MPI_SUCCESS) return code;
  if (const std::byte* instead = in_place_of(part, bytes))
    native.Isend(instead, bytes, MPI_BYTE, peer, tag, lane_, &request);
  return code;
}

int Messages::receive(const Part& part, int peer) {
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  void* const memory = const_cast<void*>(part.memory);
  int code = MPI_ERR_COUNT, bytes = 0;
  if (fits(part.count)) {
    code = entry::Irecv(memory, static_cast<int>(part.count), part.datatype, peer, tag, lane_, &request);
  } else {
    GAPLESS_IF_DECLARED(Irecv_c, code = entry::Irecv_c(memory, part.count, part.datatype, peer, tag, lane_, &request);)
  }
  if (code == MPI_SUCCESS) return code;
  if (std::byte* instead = in_place_of(part, bytes)) native.Irecv(instead, bytes, MPI_BYTE, peer, tag, lane_, &request);
  return code;
}

int Messages::finish() {
  std::vector<MPI_Status> statuses(requests_.size());
  const int code = entry::Waitall(static_cast<int>(requests_.size()), requests_.data(), statuses.data());
  if (code == MPI_SUCCESS) return code;
  for (const MPI_Status& status : statuses) {
    if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) return status.MPI_ERROR;
  }
  return code;
}

}  // namespace gapless::mpi::by_messages
