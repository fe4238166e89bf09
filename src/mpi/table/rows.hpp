// The rows of functions.def as types: for every function that does not pass by and that the header declares,
// table::rows::<name> with its name, the roles of its arguments, its member of `Native` and the library's own function.
// Templates make entry points from them.
#pragma once

#include <tuple>

#include "mpi/lifetime/errors.hpp"
#include "mpi/table/native.hpp"
#include "mpi/table/roles.hpp"

namespace gapless::mpi::table {

namespace rows {

using namespace vocabulary;  // NOLINT: the rows are written in it

#define GAPLESS_ROW(function, roles_)                                  \
  struct function {                                                    \
    static constexpr const char* name = "MPI_" #function;              \
    static constexpr auto argument_roles = roles_;                     \
    static constexpr auto member = &Native::function;                  \
    static auto native_function() noexcept { return native.function; } \
  };
#define GAPLESS_ROW_intercepted(function, roles) GAPLESS_IF_DECLARED(function, GAPLESS_ROW(function, roles))
#define GAPLESS_ROW_guarded(function, roles) GAPLESS_IF_DECLARED(function, GAPLESS_ROW(function, roles))
#define GAPLESS_ROW_waiting(function, roles) GAPLESS_IF_DECLARED(function, GAPLESS_ROW(function, roles))
#define GAPLESS_ROW_endpoints(function, roles) GAPLESS_IF_DECLARED(function, GAPLESS_ROW(function, roles))
#define GAPLESS_ROW_passed(function, roles)
#define GAPLESS_FUNCTION(function, mark, since, roles) GAPLESS_ROW_##mark(function, roles)
#include "mpi/table/functions.def"
#undef GAPLESS_ROW
#undef GAPLESS_ROW_intercepted
#undef GAPLESS_ROW_guarded
#undef GAPLESS_ROW_waiting
#undef GAPLESS_ROW_endpoints
#undef GAPLESS_ROW_passed

}  // namespace rows

/// Have calls of that row an argument of that kind?
template <class Row>
consteval bool has_role(RoleKind kind) {
  return place_of(Row::argument_roles, kind) != nowhere;
}

/// The communicator, window or file of a call of that row; nothing where it has none (a message, a session).
template <class Row, class Arguments>
ErrorObject error_object(const Arguments& arguments) noexcept {
  constexpr int communicator = place_of(Row::argument_roles, RoleKind::communicator);
  constexpr int window = place_of(Row::argument_roles, RoleKind::window);
  constexpr int file = place_of(Row::argument_roles, RoleKind::file);
  if constexpr (communicator != nowhere) {
    return ErrorObject::of_communicator(std::get<communicator>(arguments));
  } else if constexpr (window != nowhere) {
    return ErrorObject::of_window(std::get<window>(arguments));
  } else if constexpr (file != nowhere) {
    return ErrorObject::of_file(std::get<file>(arguments));
  } else {
    return {};
  }
}

/// Raises `code` there. Returns `code`.
template <class Row, class Arguments>
int raise(int code, const Arguments& arguments) noexcept {
  return raise_on(error_object<Row>(arguments), code);
}

}  // namespace gapless::mpi::table
