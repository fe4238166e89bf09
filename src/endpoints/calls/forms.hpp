// The three forms of a collective, from one plan: MPI_X runs it, MPI_IX starts it, MPI_X_init keeps it for MPI_Start.
//
// Collectives of one communicator are begun in the same order everywhere, so a number tells the messages of one from
// those of another. Persistent ones keep theirs, for they may be started in any order.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "endpoints/calls/calls.hpp"
#include "endpoints/tasks/requests.hpp"
#include "endpoints/tasks/schedule.hpp"

namespace gapless::mpi::endpoints::calls {

enum class Form { one_time, persistent };

inline int next_tag(Endpoint& endpoint, Form form) noexcept {
  const unsigned number =
      form == Form::one_time ? 2 * endpoint.collectives++ : 2 * endpoint.persistent_collectives++ + 1;
  return static_cast<int>(number & static_cast<unsigned>(endpoint.communicator->format.upper_bound()));
}

/// An error code, not raised.
template <class Plan>
int run_collective(Endpoint& endpoint, Plan plan) {
  Schedule schedule(endpoint, false);
  schedule.set_tag(next_tag(endpoint, Form::one_time));
  plan(schedule);
  return schedule.run();
}

/// Starts what is planned under a request. An error code, not raised.
inline int start_under_request(std::unique_ptr<Schedule> schedule, MPI_Request* request) {
  if (schedule->mistake() != MPI_SUCCESS) return schedule->mistake();
  Schedule* const started = schedule.release();  // the request's from here on
  const int code = requests::make(started, request);
  if (code == MPI_SUCCESS) started->start();
  return code;
}

inline int keep_under_request(std::unique_ptr<Schedule> schedule, MPI_Request* request) {
  if (schedule->mistake() != MPI_SUCCESS) return schedule->mistake();
  return requests::make_persistent(schedule.release(), request);
}

template <class Plan>
int start_collective(Endpoint& endpoint, MPI_Request* request, Plan plan) {
  auto schedule = std::make_unique<Schedule>(endpoint, true);
  schedule->set_tag(next_tag(endpoint, Form::one_time));
  plan(*schedule);
  return start_under_request(std::move(schedule), request);
}

template <class Plan>
int keep_collective(Endpoint& endpoint, MPI_Request* request, Plan plan) {
  auto schedule = std::make_unique<Schedule>(endpoint, true);
  schedule->set_tag(next_tag(endpoint, Form::persistent));
  plan(*schedule);
  return keep_under_request(std::move(schedule), request);
}

}  // namespace gapless::mpi::endpoints::calls

#define ENDPOINTS_UNWRAP(...) __VA_ARGS__
// Defines them for endpoint `e`; `plan` is an expression with schedule `s`.
#define ENDPOINTS_FORMS(Name, IName, suffix, Parameters, plan) \
  ENDPOINTS_FORMS_TOGETHER(Name, IName, suffix, Parameters, std::nullopt, plan)
// The blocking form asks `together` first, an optional code; not between two groups, which meet in no other way than
// by messages.
#define ENDPOINTS_FORMS_TOGETHER(Name, IName, suffix, Parameters, together, plan)                             \
  GAPLESS_IF_DECLARED(                                                                                        \
      Name##suffix, int Name##suffix(Endpoint& e, ENDPOINTS_UNWRAP Parameters, MPI_Comm) {                    \
        if (!e.sides.is_inter()) {                                                                            \
          if (const std::optional<int> code = together) return raise(e, *code);                               \
        }                                                                                                     \
        return raise(e, run_collective(e, [&]([[maybe_unused]] Schedule& s) { plan; }));                      \
      })                                                                                                      \
  GAPLESS_IF_DECLARED(                                                                                        \
      IName##suffix, int IName##suffix(Endpoint& e, ENDPOINTS_UNWRAP Parameters, MPI_Comm, MPI_Request* r) {  \
        return raise(e, start_collective(e, r, [&]([[maybe_unused]] Schedule& s) { plan; }));                 \
      })                                                                                                      \
  GAPLESS_IF_DECLARED(                                                                                        \
      Name##_init##suffix,                                                                                    \
      int Name##_init##suffix(Endpoint& e, ENDPOINTS_UNWRAP Parameters, MPI_Comm, MPI_Info, MPI_Request* r) { \
        return raise(e, keep_collective(e, r, [&]([[maybe_unused]] Schedule& s) { plan; }));                  \
      })
