// gapless_variant_open, which the shim calls once the program's MPI library is known: the beginning of everything in a
// variant.
#include <exception>
#include <vector>

#include "model/model.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/datatypes/early_uses.hpp"
#include "mpi/guards/extensions.hpp"
#include "mpi/guards/guarded.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/entry_points.hpp"
#include "transfer/choice/profiles.hpp"
#include "transfer/report/report.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::mpi {
namespace {

std::vector<gapless_variant_entry>& entries() {
  static auto& all = *new std::vector<gapless_variant_entry>;
  return all;
}

void add_intercepted_entries(std::vector<gapless_variant_entry>& entries) {
#define GAPLESS_ADD_intercepted(name) \
  GAPLESS_IF_DECLARED(name,           \
                      if (native.name != nullptr) entries.push_back({#name, reinterpret_cast<void*>(entry::name)});)
#define GAPLESS_ADD_guarded(name)
#define GAPLESS_ADD_waiting(name)
#define GAPLESS_ADD_endpoints(name)
#define GAPLESS_ADD_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_ADD_##mark(name)
#include "mpi/table/functions.def"
}

void set_library_profile() noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  constexpr const model::HostProfile& built_in = model::open_mpi_on_host;
#else
  constexpr const model::HostProfile& built_in = model::mpich_on_host;
#endif
  if (runtime::is_job_on_several_nodes()) model::change_profile().pair = model::Pair::other_node;
  transfer::use_profile(built_in, runtime::library_version().data());
}

}  // namespace

std::span<const gapless_variant_entry> entries_of_this_layer() noexcept { return entries(); }

}  // namespace gapless::mpi

extern "C" [[gnu::visibility("default")]] const gapless_variant_entry* gapless_variant_open(gapless_find_symbol find,
                                                                                            void* context,
                                                                                            std::size_t* count,
                                                                                            const char** why) {
  using namespace gapless::mpi;
  *why = load_native(find, context);
  if (*why != nullptr) return nullptr;
  try {
    add_intercepted_entries(entries());
    add_guarded_entries(entries());
    add_extensions(find, context, entries());
    set_library_profile();
    early_uses::set_prices();
    counts_native_messages = gapless::transfer::statistics_wanted() || gapless::transfer::report_wanted();
    *count = entries().size();
    return entries().data();
  } catch (const std::exception&) {
    *why = "out of memory";
    return nullptr;
  }
}
