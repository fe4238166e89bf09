// A call that would hand GPU memory to a library that cannot read it ends in a clear MPI error instead of a crash.
// Where no GPU is in use, a guard is one test and a jump.
#include "mpi/guarded.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

#include "device/device.hpp"
#include "mpi/errors.hpp"
#include "mpi/native.hpp"
#include "mpi/runtime.hpp"

namespace gapless::mpi {
namespace {

// The vocabulary of functions.def.
enum class HandleKind { none, communicator, window, file, other };
struct Handle {
  HandleKind kind;
  std::size_t argument;
};
[[maybe_unused]] constexpr Handle communicator(std::size_t i) { return {HandleKind::communicator, i}; }
[[maybe_unused]] constexpr Handle window(std::size_t i) { return {HandleKind::window, i}; }
[[maybe_unused]] constexpr Handle file(std::size_t i) { return {HandleKind::file, i}; }
// Errors of sessions and messages have no better place than those of no object.
[[maybe_unused]] constexpr Handle session(std::size_t i) { return {HandleKind::other, i}; }
[[maybe_unused]] constexpr Handle message(std::size_t i) { return {HandleKind::other, i}; }
[[maybe_unused]] constexpr Handle request(std::size_t i) { return {HandleKind::other, i}; }
[[maybe_unused]] constexpr Handle none{HandleKind::none, 0};
template <class... Index>
constexpr auto buffers(Index... i) {
  return std::array<std::size_t, sizeof...(Index)>{static_cast<std::size_t>(i)...};
}

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
      const int gpu = first_gpu(std::tie(arguments...), std::make_index_sequence<Row::buffer_arguments.size()>());
      if (gpu >= 0 && !runtime::library_reads_gpu_memory()) return refuse(gpu, std::tie(arguments...));
    }
    return Row::native_function()(arguments...);
  }

 private:
  static constexpr bool is_buffer(std::size_t argument) noexcept {
    return std::ranges::find(Row::buffer_arguments, argument) != Row::buffer_arguments.end();
  }

  /// Nothing of the buffer is read or written: its count or size, the first argument after it that is no buffer, is 0.
  /// (Where a datatype stands there, which some libraries represent by an integer, that is never 0.)
  template <std::size_t buffer, class Tuple>
  static bool is_empty(const Tuple& arguments) noexcept {
    constexpr std::size_t next = buffer + 1;
    if constexpr (next < sizeof...(Arguments)) {
      if constexpr (is_buffer(next)) return is_empty<next>(arguments);
      if constexpr (std::is_integral_v<std::remove_cvref_t<std::tuple_element_t<next, Tuple>>>) {
        return std::get<next>(arguments) == 0;
      }
    }
    return false;
  }

  template <class Tuple, std::size_t... i>
  static int first_gpu(const Tuple& arguments, std::index_sequence<i...>) noexcept {
    int gpu = -1;
    static_cast<void>(((!is_empty<Row::buffer_arguments[i]>(arguments) &&
                        (gpu = gpu_of(std::get<Row::buffer_arguments[i]>(arguments))) >= 0) ||
                       ...));
    return gpu;
  }

  [[gnu::cold]] static int refuse(int gpu, const std::tuple<Arguments&...>& arguments) noexcept {
    const int code = unserved_gpu_memory(Row::name, gpu);
    constexpr Handle handle = Row::handle;
    if constexpr (handle.kind == HandleKind::communicator) {
      return raise_on_communicator(std::get<handle.argument>(arguments), code);
    } else if constexpr (handle.kind == HandleKind::window) {
      return raise_on_window(std::get<handle.argument>(arguments), code);
    } else if constexpr (handle.kind == HandleKind::file) {
      return raise_on_file(std::get<handle.argument>(arguments), code);
    } else {
      return raise_without_object(code);
    }
  }
};

namespace rows {
#define GAPLESS_ROW(function_name, handle_, buffers_)                       \
  struct function_name {                                                    \
    static constexpr const char* name = "MPI_" #function_name;              \
    static constexpr Handle handle = handle_;                               \
    static constexpr auto buffer_arguments = buffers_;                      \
    static auto native_function() noexcept { return native.function_name; } \
  };
#define GAPLESS_ROW_intercepted(name, handle, buffers)
#define GAPLESS_ROW_guarded(name, handle, buffers) GAPLESS_IF_DECLARED(name, GAPLESS_ROW(name, handle, buffers))
#define GAPLESS_ROW_refused(name, handle, buffers)
#define GAPLESS_ROW_passed(name, handle, buffers)
#define GAPLESS_FUNCTION(name, mark, since, handle, buffers) GAPLESS_ROW_##mark(name, handle, buffers)
#include "mpi/functions.def"
}  // namespace rows

template <class Row>
void add(std::vector<gapless_variant_entry>& entries, const char* name) {
  if (Row::native_function() == nullptr) return;
  entries.push_back({name, reinterpret_cast<void*>(&Guard<Row, decltype(Row::native_function())>::call)});
}

}  // namespace

void add_guarded_entries(std::vector<gapless_variant_entry>& entries) {
#define GAPLESS_ADD_intercepted(name)
#define GAPLESS_ADD_guarded(name) GAPLESS_IF_DECLARED(name, add<rows::name>(entries, #name);)
#define GAPLESS_ADD_refused(name)
#define GAPLESS_ADD_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, handle, buffers) GAPLESS_ADD_##mark(name)
#include "mpi/functions.def"
}

}  // namespace gapless::mpi
