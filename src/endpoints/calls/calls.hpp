// The calls that endpoints serve. Those of served.def get the endpoint before their arguments; those that complete
// requests and messages have the arguments alone, and stand in the place of the library's for every handle.
#pragma once

#include "endpoints/endpoint.hpp"
#include "mpi/table/native.hpp"

// clang-format off
#define ENDPOINTS_REPLACED(X) \
  X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome) \
  X(Request_get_status) X(Request_get_status_all) \
  X(Request_get_status_any) X(Request_get_status_some) X(Cancel) X(Mrecv) X(Mrecv_c) X(Imrecv) X(Imrecv_c) X(Finalize)
// clang-format on

namespace gapless::mpi::endpoints::calls {

template <class Function>
struct Served;
template <class... Arguments>
struct Served<int (*)(Arguments...)> {
  using type = int(Endpoint&, Arguments...);
  using replaced = int(Arguments...);
};

#define ENDPOINTS_SERVED(name) GAPLESS_IF_DECLARED(name, Served<decltype(Native::name)>::type name;)
#define ENDPOINTS_HANDLE(name)
#include "endpoints/served.def"

#define ENDPOINTS_DECLARE(name) GAPLESS_IF_DECLARED(name, Served<decltype(Native::name)>::replaced name;)
ENDPOINTS_REPLACED(ENDPOINTS_DECLARE)
#undef ENDPOINTS_DECLARE

/// Raises the code through the endpoint's error handler. Returns it.
int raise(const Endpoint& endpoint, int code) noexcept;

// What collectives are made of: blocking, in their own context. An error code, not raised.
struct Part {
  const void* memory;
  MPI_Count count;
  MPI_Datatype datatype;
};
int send_part(Endpoint& endpoint, const Part& part, int destination);
int receive_part(Endpoint& endpoint, const Part& part, int source);
int exchange_parts(Endpoint& endpoint, const Part& out, int destination, const Part& in, int source);

}  // namespace gapless::mpi::endpoints::calls
