// A call that would hand GPU memory to a library that cannot read it is staged through host memory, or ends in a clear
// MPI error instead of a crash. Where no GPU is in use, a guard is one test and a jump.
#include "mpi/table/guarded.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include "device/device.hpp"
#include "mpi/calls/count_arrays.hpp"
#include "mpi/calls/staged_call.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi {
namespace {

using table::is_memory, table::Kind, table::place_of, table::Role;

// The GPU a choice buffer is memory of, or -1.
int gpu_of(const void* memory) noexcept {
  if (memory == MPI_BOTTOM || memory == MPI_IN_PLACE) return -1;
  const device::Location location = device::locate(memory);
  return location.kind == device::MemoryKind::device ? location.device : -1;
}

template <class Row, class Function>
struct Guard;

template <class Row, class... Arguments>
struct Guard<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    if (device::in_use()) [[unlikely]] {
      const int gpu = first_gpu(std::tie(arguments...), std::make_index_sequence<Row::argument_roles.size()>());
      if (gpu >= 0 && !runtime::library_reads_gpu_memory()) return with_gpu_memory(gpu, arguments...);
    }
    return Row::native_function()(arguments...);
  }

 private:
  using Tuple = std::tuple<Arguments&...>;
  static constexpr int communicator = place_of(Row::argument_roles, Kind::communicator);

  template <class Count>
  static bool are_all_zero(const Count* counts, MPI_Comm of, Kind kind) noexcept {
    return std::all_of(counts, counts + count_entries(of, peers_of(kind)), [](Count count) { return count == 0; });
  }

  /// Nothing of the buffer is read or written: it matters at another process only, or its counts are 0.
  template <std::size_t i>
  static bool is_untouched(const Tuple& arguments) noexcept {
    constexpr Role role = Row::argument_roles[i];
    if constexpr (role.only_at_root) {
      constexpr int root = place_of(Row::argument_roles, Kind::root);
      if (!is_root(std::get<communicator>(arguments), std::get<root>(arguments))) return true;
    }
    if constexpr (role.kind != Kind::send_one && role.kind != Kind::receive_one) {
      const auto count = std::get<role.places[1]>(arguments);
      if constexpr (std::is_integral_v<decltype(count)>) {
        return count == 0;
      } else {
        return are_all_zero(count, std::get<communicator>(arguments), role.kind);
      }
    }
    return false;
  }

  /// The GPU of the buffer of role `i`, if the call touches it, else -1.
  template <std::size_t i>
  static int gpu_of_role(const Tuple& arguments) noexcept {
    constexpr Role role = Row::argument_roles[i];
    if constexpr (is_memory(role.kind)) {
      const int gpu = gpu_of(std::get<role.places[0]>(arguments));
      if (gpu >= 0 && !is_untouched<i>(arguments)) return gpu;
    }
    return -1;
  }

  template <std::size_t... i>
  static int first_gpu(const Tuple& arguments, std::index_sequence<i...>) noexcept {
    int gpu = -1;
    static_cast<void>((((gpu = gpu_of_role<i>(arguments)) >= 0) || ...));
    return gpu;
  }

  [[gnu::cold]] static int with_gpu_memory(int gpu, Arguments... arguments) noexcept {
    if constexpr (can_be_staged<Row>()) {
      return StagedCall<Row, Arguments...>({arguments...}).run(gpu);
    } else {
      return table::raise<Row>(unserved_gpu_memory(Row::name, gpu), std::tie(arguments...));
    }
  }
};

template <class Row>
void add(std::vector<gapless_variant_entry>& entries, const char* name) {
  if (Row::native_function() == nullptr) return;
  entries.push_back({name, reinterpret_cast<void*>(&Guard<Row, decltype(Row::native_function())>::call)});
}

}  // namespace

void add_guarded_entries(std::vector<gapless_variant_entry>& entries) {
#define GAPLESS_ADD_intercepted(name)
#define GAPLESS_ADD_guarded(name) GAPLESS_IF_DECLARED(name, add<table::rows::name>(entries, #name);)
#define GAPLESS_ADD_refused(name)
#define GAPLESS_ADD_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_ADD_##mark(name)
#include "mpi/table/functions.def"
}

}  // namespace gapless::mpi
