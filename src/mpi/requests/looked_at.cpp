#include "mpi/requests/looked_at.hpp"

#include "mpi/requests/outstanding.hpp"

namespace gapless::mpi::requests::looked_at {

constinit std::array<internal::Set, std::size_t{1} << internal::set_bits> internal::table{};
constinit std::size_t internal::used = 0;

namespace {

constexpr const char* function = "MPI_Irecv";
constexpr int most_at_once = 64;

template <class Function>
void for_each(Function function) noexcept {
  for (internal::Set& set : internal::table) {
    for (Receive& each : set) {
      if (each.landing != nullptr) function(each);
    }
  }
}

void remove(Receive& receive) noexcept {
  receive.landing = nullptr;
  --internal::used;
  count_outstanding(-1);
}

bool has_header(const Receive& receive) noexcept {
  return transfer::headers::is_header(receive.landing, transfer::headers::Header::size);
}

/// A header has landed. MPI_SUCCESS, or the error, raised by `raise`.
template <class Raise>
[[gnu::noinline]] int fetch(const Receive& receive, MPI_Status* wanted, Raise raise) noexcept {
  Receiving<MPI_Count> in(receive.memory, receive.count, receive.datatype, false);
  const bool is_wanted = wanted != MPI_STATUS_IGNORE && wanted != nullptr;
  MPI_Status filled{};
  if (is_wanted) filled = *wanted;
  ReceivedStatus status(filled, is_wanted ? wanted : nullptr);
  status.set_bytes(transfer::headers::Header::size);
  return in.finish_call(status, MPI_SUCCESS, function, raise);
}

int fetch_alone(const Receive& receive, MPI_Status* wanted) noexcept {
  return fetch(receive, wanted,
               [&](int code) { return raise_on(ErrorObject::of_communicator(receive.communicator), code); });
}

bool make_pending(const Receive& receive) noexcept {
  Pending* pending = acquire();
  if (pending == nullptr) return false;
  auto& side = pending->make<Receiving<MPI_Count>>(receive.memory, receive.count, receive.datatype, false);
  int code = MPI_SUCCESS;
  static_cast<void>(side.prepare(function, code));  // there is nothing to be had for it
  pending->function = function;
  pending->error_object = ErrorObject::of_communicator(receive.communicator);
  requests::add(pending, receive.handle);
  return true;
}

}  // namespace

int add(const Receive& receive) noexcept {
  for (Receive& place : set_of(receive.handle)) {
    if (place.landing != nullptr) continue;
    place = receive;
    ++internal::used;
    count_outstanding(1);
    return MPI_SUCCESS;
  }
  return make_pending(receive) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void promote(MPI_Request handle) noexcept {
  Receive* const found = find(handle);
  if (found != nullptr && make_pending(*found)) remove(*found);
}

void promote_all() noexcept {
  for_each([](Receive& each) { promote(each.handle); });
}

void outlive(MPI_Datatype datatype, std::int64_t bytes) noexcept {
  if (!are_any()) return;
  for_each([&](Receive& each) {
    if (each.datatype != datatype) return;
    each.memory = const_cast<void*>(each.landing);
    each.count = static_cast<MPI_Count>(each.count * bytes);
    each.datatype = MPI_BYTE;
  });
}

int wait(Receive& receive, MPI_Request* request, MPI_Status* status) noexcept {
  const int code = native.Wait(request, status);
  if (code != MPI_SUCCESS && *request != MPI_REQUEST_NULL) return code;
  const Receive arrived = receive;
  remove(receive);
  return code == MPI_SUCCESS && has_header(arrived) ? fetch_alone(arrived, status) : code;
}

int test(Receive& receive, MPI_Request* request, int* flag, MPI_Status* status) noexcept {
  const int code = native.Test(request, flag, status);
  if (*request != MPI_REQUEST_NULL) return code;
  const Receive arrived = receive;
  remove(receive);
  return code == MPI_SUCCESS && has_header(arrived) ? fetch_alone(arrived, status) : code;
}

bool can_wait_for_all(int count, const MPI_Request* requests) noexcept {
  return are_any() && how_many() == internal::used && count <= most_at_once && requests != nullptr;
}

int wait_all(int count, MPI_Request* requests, MPI_Status* statuses) noexcept {
  Receive* receives[most_at_once];
  for (int i = 0; i < count; ++i) receives[i] = find(requests[i]);
  const int code = native.Waitall(count, requests, statuses);
  const bool has_statuses = statuses != MPI_STATUSES_IGNORE && statuses != nullptr;
  int first = MPI_SUCCESS;
  ErrorObject object;
  for (int i = 0; i < count; ++i) {
    // What has failed has no header, and what is not complete stays.
    if (receives[i] == nullptr || requests[i] != MPI_REQUEST_NULL) continue;
    const Receive arrived = *receives[i];
    remove(*receives[i]);
    if (!has_header(arrived)) continue;
    const int ours = fetch(arrived, has_statuses ? statuses + i : MPI_STATUS_IGNORE, [](int error) { return error; });
    if (ours == MPI_SUCCESS) continue;
    if (first == MPI_SUCCESS && code == MPI_SUCCESS) {
      for (int k = 0; has_statuses && k < count; ++k) statuses[k].MPI_ERROR = MPI_SUCCESS;
      object = ErrorObject::of_communicator(tells_world_of(ours) ? MPI_COMM_WORLD : arrived.communicator);
    }
    if (has_statuses) statuses[i].MPI_ERROR = ours;
    first = ours;
  }
  return first == MPI_SUCCESS || code != MPI_SUCCESS ? code : raise_on(object, MPI_ERR_IN_STATUS);
}

}  // namespace gapless::mpi::requests::looked_at
