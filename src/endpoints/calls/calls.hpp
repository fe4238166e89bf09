// The calls that endpoints serve. Those of endpoints/served.def get the endpoint before their arguments; those that
// complete requests and messages, and those of groups, have the arguments alone, and stand in the place of the
// library's for every handle.
#pragma once

#include "endpoints/endpoint.hpp"
#include "mpi/table/native.hpp"

// clang-format off
#define ENDPOINTS_REPLACED(X) \
  X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome) \
  X(Request_get_status) X(Request_get_status_all) \
  X(Request_get_status_any) X(Request_get_status_some) X(Cancel) X(Start) X(Startall) X(Request_free) X(Mrecv) X(Mrecv_c) X(Imrecv) X(Imrecv_c) X(Finalize) \
  X(Group_size) X(Group_rank) X(Group_translate_ranks) X(Group_compare) X(Group_union) X(Group_intersection) \
  X(Group_difference) X(Group_incl) X(Group_excl) X(Group_range_incl) X(Group_range_excl) X(Group_free) \
  X(Comm_create_from_group) X(Intercomm_create_from_groups)
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

// An error class, or success. A peer that is right becomes its rank among those of the `Communicator`.
int check_send(const Endpoint& endpoint, int& destination, int tag) noexcept;
int check_receive(const Endpoint& endpoint, int& source, int tag) noexcept;

}  // namespace gapless::mpi::endpoints::calls
