// Persistent messages, and exchanges under one request: schedules of one or two messages.
#include <vector>

#include "endpoints/calls/forms.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

Data owned(Schedule& schedule, const Data& data) { return {data.memory, data.count, schedule.own(data.datatype)}; }

int keep_send(Endpoint& endpoint, const Data& data, int to, int tag, Mode mode, MPI_Request* request) {
  if (const int code = check_send(endpoint, to, tag); code != MPI_SUCCESS) return raise(endpoint, code);
  auto schedule = std::make_unique<Schedule>(endpoint, true);
  if (to != MPI_PROC_NULL) schedule->send(owned(*schedule, data), to, tag, Context::messages, mode);
  return raise(endpoint, keep_under_request(std::move(schedule), request));
}

int keep_receive(Endpoint& endpoint, const Data& data, int from, int tag, MPI_Request* request) {
  if (const int code = check_receive(endpoint, from, tag); code != MPI_SUCCESS) return raise(endpoint, code);
  auto schedule = std::make_unique<Schedule>(endpoint, true);
  schedule->receives = true;
  if (from != MPI_PROC_NULL) schedule->receive(owned(*schedule, data), from, tag, Context::messages, true);
  return raise(endpoint, keep_under_request(std::move(schedule), request));
}

struct Ends {
  int to, send_tag, from, receive_tag;
};

int start_exchange(Endpoint& endpoint, const Data& out, const Data& in, bool in_place, Ends ends,
                   MPI_Request* request) {
  int code = check_send(endpoint, ends.to, ends.send_tag);
  if (code == MPI_SUCCESS) code = check_receive(endpoint, ends.from, ends.receive_tag);
  if (code != MPI_SUCCESS) return raise(endpoint, code);
  auto schedule = std::make_unique<Schedule>(endpoint, true);
  if (!schedule->accepts(in)) return raise(endpoint, schedule->mistake());
  schedule->receives = true;
  const Data target = owned(*schedule, in);
  Data source = owned(*schedule, out);
  if (in_place) {
    source = schedule->scratch(target.count, target.datatype)->data();
    schedule->copy(target, source);
  }
  if (ends.from != MPI_PROC_NULL) schedule->receive(target, ends.from, ends.receive_tag, Context::messages, true);
  if (ends.to != MPI_PROC_NULL) schedule->send(source, ends.to, ends.send_tag, Context::messages, Mode::standard);
  return raise(endpoint, start_under_request(std::move(schedule), request));
}

using requests::Request;

/// Starts a persistent request of an endpoint.
int start(Request& request) {
  if (request.is_active) return raise(*request.endpoint, MPI_ERR_REQUEST);
  request.is_active = true;
  static_cast<Schedule&>(*request.task).start();
  return MPI_SUCCESS;
}

Request* find_persistent(MPI_Request handle) noexcept {
  Request* const request = requests::find(handle);
  return request != nullptr && request->is_persistent ? request : nullptr;
}

}  // namespace

#define ENDPOINTS_PERSISTENT(suffix, Count)                                                                            \
  GAPLESS_IF_DECLARED(                                                                                                 \
      Send_init##suffix, int Send_init##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag,   \
                                               MPI_Comm, MPI_Request* r) {                                             \
        return keep_send(e, {b, n, t}, to, tag, Mode::standard, r);                                                    \
      })                                                                                                               \
  GAPLESS_IF_DECLARED(                                                                                                 \
      Ssend_init##suffix, int Ssend_init##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, \
                                                 MPI_Comm, MPI_Request* r) {                                           \
        return keep_send(e, {b, n, t}, to, tag, Mode::synchronous, r);                                                 \
      })                                                                                                               \
  GAPLESS_IF_DECLARED(                                                                                                 \
      Bsend_init##suffix, int Bsend_init##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, \
                                                 MPI_Comm, MPI_Request* r) {                                           \
        return keep_send(e, {b, n, t}, to, tag, Mode::buffered, r);                                                    \
      })                                                                                                               \
  GAPLESS_IF_DECLARED(                                                                                                 \
      Rsend_init##suffix, int Rsend_init##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int tag, \
                                                 MPI_Comm, MPI_Request* r) {                                           \
        return keep_send(e, {b, n, t}, to, tag, Mode::standard, r);                                                    \
      })                                                                                                               \
  GAPLESS_IF_DECLARED(                                                                                                 \
      Recv_init##suffix, int Recv_init##suffix(Endpoint& e, void* b, Count n, MPI_Datatype t, int from, int tag,       \
                                               MPI_Comm, MPI_Request* r) {                                             \
        return keep_receive(e, {b, n, t}, from, tag, r);                                                               \
      })                                                                                                               \
  GAPLESS_IF_DECLARED(                                                                                                 \
      Isendrecv##suffix,                                                                                               \
      int Isendrecv##suffix(Endpoint& e, const void* b, Count n, MPI_Datatype t, int to, int send_tag, void* rb,       \
                            Count rn, MPI_Datatype rt, int from, int receive_tag, MPI_Comm, MPI_Request* r) {          \
        return start_exchange(e, {b, n, t}, {rb, rn, rt}, false, {to, send_tag, from, receive_tag}, r);                \
      })                                                                                                               \
  GAPLESS_IF_DECLARED(                                                                                                 \
      Isendrecv_replace##suffix,                                                                                       \
      int Isendrecv_replace##suffix(Endpoint& e, void* b, Count n, MPI_Datatype t, int to, int send_tag, int from,     \
                                    int receive_tag, MPI_Comm, MPI_Request* r) {                                       \
        return start_exchange(e, {b, n, t}, {b, n, t}, true, {to, send_tag, from, receive_tag}, r);                    \
      })
ENDPOINTS_PERSISTENT(, int)
ENDPOINTS_PERSISTENT(_c, MPI_Count)
#undef ENDPOINTS_PERSISTENT

int Start(MPI_Request* handle) {
  return guarded([&]() -> int {
    Request* const request = handle == nullptr ? nullptr : requests::find(*handle);
    if (request == nullptr) return inner.Start(handle);
    return request->is_persistent ? start(*request) : raise_without_object(MPI_ERR_REQUEST);
  });
}

int Startall(int count, MPI_Request* requests) {
  return guarded([&]() -> int {
    if (requests::are_none() || requests == nullptr || count < 0) return inner.Startall(count, requests);
    std::vector<MPI_Request> others;
    std::vector<int> places;  // of the others
    int result = MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
      if (Request* const request = find_persistent(requests[i])) {
        const int code = start(*request);
        if (result == MPI_SUCCESS) result = code;
      } else {
        others.push_back(requests[i]);
        places.push_back(i);
      }
    }
    const int code = others.empty() ? MPI_SUCCESS : inner.Startall(static_cast<int>(others.size()), others.data());
    // A library may start a request under another handle.
    for (std::size_t k = 0; k < others.size(); ++k) requests[places[k]] = others[k];
    return code != MPI_SUCCESS ? code : result;
  });
}

int Request_free(MPI_Request* handle) {
  return guarded([&]() -> int {
    Request* const request = handle == nullptr ? nullptr : requests::find(*handle);
    if (request == nullptr) return inner.Request_free(handle);
    if (request->task == nullptr) return raise_without_object(MPI_ERR_REQUEST);
    *handle = MPI_REQUEST_NULL;
    requests::abandon(*request);
    return MPI_SUCCESS;
  });
}

}  // namespace gapless::mpi::endpoints::calls
