#include "endpoints/inner.hpp"

#include <cstring>

#include "mpi/table/entry_points.hpp"

namespace gapless::mpi::endpoints {

Native inner;

namespace {

template <class Function>
void take(Function& function, const char* name) noexcept {
  for (const gapless_variant_entry& entry : entries_of_this_layer()) {
    if (std::strcmp(entry.name, name) == 0) function = reinterpret_cast<Function>(entry.implementation);
  }
}

}  // namespace

void load_inner() noexcept {
  inner = native;
#define GAPLESS_TAKE(name) GAPLESS_IF_DECLARED(name, take(inner.name, #name);)
#define GAPLESS_TAKE_intercepted(name) GAPLESS_TAKE(name)
#define GAPLESS_TAKE_guarded(name) GAPLESS_TAKE(name)
#define GAPLESS_TAKE_waiting(name) GAPLESS_TAKE(name)
#define GAPLESS_TAKE_endpoints(name)
#define GAPLESS_TAKE_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_TAKE_##mark(name)
#include "mpi/table/functions.def"
}

}  // namespace gapless::mpi::endpoints
