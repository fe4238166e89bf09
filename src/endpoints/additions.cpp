// What the variant adds to MPI: the functions of gapless/endpoints.h, and how the shim learns of the endpoints' calls.
#include <iterator>

#include "endpoints/communicators/creation.hpp"
#include "endpoints/communicators/query.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "endpoints/fortran.hpp"
#include "endpoints/inner.hpp"

extern "C" [[gnu::visibility("default")]] const gapless_variant_entry* gapless_additions_open(gapless_redirect redirect,
                                                                                              std::size_t* count) {
  using namespace gapless::mpi::endpoints;
  set_redirect(redirect);
  load_inner();
  static const gapless_variant_entry additions[] = {
      {"Comm_create_endpoints", reinterpret_cast<void*>(&create)},
      {"Query_endpoints", reinterpret_cast<void*>(&query)},
      {"Init_endpoints", reinterpret_cast<void*>(&init_endpoints)},
      {"Endpoint_attach", reinterpret_cast<void*>(&attach)},
      {"comm_create_endpoints_", reinterpret_cast<void*>(&fortran::create)},
      {"query_endpoints_", reinterpret_cast<void*>(&fortran::query)},
      {"init_endpoints_", reinterpret_cast<void*>(&fortran::init)},
      {"endpoint_attach_", reinterpret_cast<void*>(&fortran::attach)},
  };
  *count = std::size(additions);
  return additions;
}
