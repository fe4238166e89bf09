// A call that would hand GPU memory to a library that cannot read it ends in a clear MPI error instead of a crash.
// Where no GPU is in use, a guard is one test and a jump.
#include "mpi/guarded.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "device/device.hpp"
#include "mpi/count_arrays.hpp"
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
struct Buffer {
  std::size_t argument;
  bool only_at_root = false;
  constexpr Buffer(int i) : argument(static_cast<std::size_t>(i)) {}
};
constexpr Buffer at_root(int i) {
  Buffer buffer(i);
  buffer.only_at_root = true;
  return buffer;
}
template <class... Argument>
constexpr auto buffers(Argument... i) {
  return std::array<Buffer, sizeof...(Argument)>{Buffer(i)...};
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
  using Tuple = std::tuple<Arguments&...>;
  template <std::size_t i>
  using Argument = std::remove_cvref_t<std::tuple_element_t<i, Tuple>>;

  /// The first argument after a buffer that is none: its count or size, an array of counts, or a datatype.
  static constexpr std::size_t count_of(std::size_t buffer) noexcept {
    std::size_t next = buffer + 1;
    while (std::ranges::find(Row::buffer_arguments, next, &Buffer::argument) != Row::buffer_arguments.end()) ++next;
    return next;
  }

  template <class Count>
  static bool are_all_zero(const Count* counts, MPI_Comm communicator, std::size_t buffer) noexcept {
    constexpr bool of_neighbours = std::string_view(Row::name).find("eighbor") != std::string_view::npos;
    const bool sends = buffer == 0;
    const int entries = count_entries(communicator, !of_neighbours ? CountsOf::processes
                                                    : sends        ? CountsOf::destinations
                                                                   : CountsOf::sources);
    return std::all_of(counts, counts + entries, [](Count count) { return count == 0; });
  }

  /// Nothing of the buffer is read or written: it matters at another process only, or its counts are 0. (A datatype
  /// that stands in the count's place, which some libraries represent by an integer, is never 0.)
  template <std::size_t i>
  static bool is_untouched(const Tuple& arguments) noexcept {
    constexpr Buffer buffer = Row::buffer_arguments[i];
    constexpr Handle handle = Row::handle;
    if constexpr (buffer.only_at_root) {
      if (!is_root(std::get<handle.argument>(arguments), std::get<handle.argument - 1>(arguments))) return true;
    }
    constexpr std::size_t count = count_of(buffer.argument);
    if constexpr (std::is_integral_v<Argument<count>>) {
      return std::get<count>(arguments) == 0;
    } else if constexpr (std::is_same_v<Argument<count>, const int*> ||
                         std::is_same_v<Argument<count>, const MPI_Count*>) {
      return are_all_zero(std::get<count>(arguments), std::get<handle.argument>(arguments), buffer.argument);
    }
    return false;
  }

  template <std::size_t... i>
  static int first_gpu(const Tuple& arguments, std::index_sequence<i...>) noexcept {
    int gpu = -1;
    const auto is_touched_gpu = [&](int found, auto number) {
      if (found >= 0 && !is_untouched<number()>(arguments)) gpu = found;
      return gpu >= 0;
    };
    static_cast<void>((is_touched_gpu(gpu_of(std::get<Row::buffer_arguments[i].argument>(arguments)),
                                      std::integral_constant<std::size_t, i>()) ||
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
