// The library's own functions are found here, since the table of native functions has only what headers declare.
#include "mpi/guards/extensions.hpp"

#include <tuple>
#include <type_traits>

#include "mpi/requests/deferred.hpp"
#include "mpi/requests/outstanding.hpp"

namespace gapless::mpi {
namespace {

template <int number, class... Arguments>
struct Extension {
  static inline int (*native_function)(Arguments...) = nullptr;
  static int call(Arguments... arguments) {
    requests::start_deferred();
    if constexpr (std::is_same_v<std::tuple<Arguments...>, std::tuple<MPI_Request>>) {  // MPIX_Request_is_complete
      const auto use = [](MPI_Request& request) {
        if (requests::Pending* pending = requests::find(request)) request = pending->in_use()->handle;
      };
      if (!requests::are_none()) (use(arguments), ...);
    }
    return native_function(arguments...);
  }
};

}  // namespace

void add_extensions(gapless_find_symbol find, void* context, std::vector<gapless_variant_entry>& entries) {
#define GAPLESS_EXTENSION(name, ...)                                                         \
  {                                                                                          \
    using Entry = Extension<__COUNTER__, __VA_ARGS__>;                                       \
    void* found = find("PMPIX_" #name, context);                                             \
    Entry::native_function = reinterpret_cast<decltype(Entry::native_function)>(found);      \
    if (found != nullptr) entries.push_back({#name, reinterpret_cast<void*>(&Entry::call)}); \
  }
#include "mpi/table/extensions.def"
}

}  // namespace gapless::mpi
