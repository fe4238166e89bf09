// gapless_variant_open, which the shim calls once the program's MPI library is known: the beginning of everything in a
// variant.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/datatypes/early_uses.hpp"
#include "mpi/guards/extensions.hpp"
#include "mpi/guards/guarded.hpp"
#include "mpi/lifetime/nodes.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/library_traits.hpp"
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
  constexpr const model::HostProfile& built_in = is_open_mpi ? model::open_mpi_on_host : model::mpich_on_host;
  if (is_job_on_several_nodes()) model::change_profile().pair = model::Pair::other_node;
  transfer::use_profile(built_in, runtime::library_version().data());
}

/// Why the library cannot be served though it has all functions; null if it can.
const char* find_fault_with_library() noexcept {
  const auto version = runtime::library_version();
  std::string_view name = version.data();
  name = name.substr(0, name.find_first_of("\r\n"));
  if (is_of_this_family(name)) return nullptr;
  static char why[160];
  const int shown = static_cast<int>(std::min(name.size(), std::size_t{60}));
  std::snprintf(why, sizeof why, "it calls itself \"%.*s\", and neither Open MPI nor a kind of MPICH", shown,
                name.data());
  return why;
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
  if (*why == nullptr) *why = find_fault_with_library();
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
