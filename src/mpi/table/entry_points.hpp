// What the variant hands to the shim: for every intercepted function, gapless::mpi::entry::<name>; for every guarded or
// waiting one, an entry point made from the table (mpi/guards/guarded.cpp).
#pragma once

#include <span>

#include "mpi/table/native.hpp"

namespace gapless::mpi {

/// Where calls of all functions go that this layer serves, by their names without prefix. Set when the variant is
/// opened.
std::span<const gapless_variant_entry> entries_of_this_layer() noexcept;

/// "MPI_Send" for &Native::Send, for error texts.
template <auto member>
inline constexpr const char* name_of = nullptr;

namespace entry {

#define GAPLESS_ENTRY_intercepted(name) GAPLESS_IF_DECLARED(name, extern const decltype(Native::name) name;)
#define GAPLESS_ENTRY_guarded(name)
#define GAPLESS_ENTRY_waiting(name)
#define GAPLESS_ENTRY_endpoints(name)
#define GAPLESS_ENTRY_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_ENTRY_##mark(name)
#include "mpi/table/functions.def"
#undef GAPLESS_ENTRY_intercepted
#undef GAPLESS_ENTRY_guarded
#undef GAPLESS_ENTRY_waiting
#undef GAPLESS_ENTRY_endpoints
#undef GAPLESS_ENTRY_passed

}  // namespace entry

#define GAPLESS_NAME(name) \
  GAPLESS_IF_DECLARED(name, template <> inline constexpr const char* name_of<& Native::name> = "MPI_" #name;)
#define GAPLESS_NAME_intercepted(name) GAPLESS_NAME(name)
#define GAPLESS_NAME_guarded(name)
#define GAPLESS_NAME_waiting(name)
#define GAPLESS_NAME_endpoints(name)
#define GAPLESS_NAME_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_NAME_##mark(name)
#include "mpi/table/functions.def"
#undef GAPLESS_NAME
#undef GAPLESS_NAME_intercepted
#undef GAPLESS_NAME_guarded
#undef GAPLESS_NAME_waiting
#undef GAPLESS_NAME_endpoints
#undef GAPLESS_NAME_passed

}  // namespace gapless::mpi
