// Buffers that a program attaches for its buffered sends. Where one is GPU memory, which no library can write to, the
// library gets host memory of the same size in its place, and the program its own address back.
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <tuple>

#include "device/device.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi {
namespace {

/// The GPU memory that each host memory stands for.
class Replaced {
 public:
  /// Null if there is no memory.
  void* replace(void* gpu_memory, std::size_t bytes) noexcept try {
    void* const host = std::malloc(bytes);
    if (host == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    gpu_memory_by_host_.emplace(host, gpu_memory);
    return host;
  } catch (const std::exception&) {
    return nullptr;
  }
  /// Gives back what `buffer` stands for, and frees `buffer`; any other buffer is given back itself.
  void* give_back(void* buffer) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = gpu_memory_by_host_.find(buffer);
    if (found == gpu_memory_by_host_.end()) return buffer;
    void* const gpu_memory = found->second;
    gpu_memory_by_host_.erase(found);
    std::free(buffer);
    return gpu_memory;
  }

 private:
  std::mutex mutex_;
  std::map<void*, void*> gpu_memory_by_host_;
};
Replaced& replaced() noexcept {
  static Replaced& instance = *new Replaced;
  return instance;
}

bool is_on_gpu(const void* memory) noexcept {
  return device::in_use() && device::locate(memory).kind == device::MemoryKind::device;
}

template <class Row, class Function = decltype(Row::native_function())>
struct Attach;
/// The last arguments are the buffer and its size in bytes.
template <class Row, class... Arguments>
struct Attach<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    std::tuple<Arguments...> all(arguments...);
    constexpr std::size_t count = sizeof...(Arguments);
    void*& buffer = std::get<count - 2>(all);
    const auto bytes = std::get<count - 1>(all);
    if (bytes <= 0 || !is_on_gpu(buffer)) return Row::native_function()(arguments...);
    void* const host = replaced().replace(buffer, static_cast<std::size_t>(bytes));
    if (host == nullptr) return table::raise<Row>(MPI_ERR_NO_MEM, all);
    buffer = host;
    const int code = std::apply(Row::native_function(), all);
    if (code != MPI_SUCCESS) replaced().give_back(host);
    return code;
  }
};

template <class Row, class Function = decltype(Row::native_function())>
struct Detach;
/// The last arguments are the addresses of the buffer's address and size.
template <class Row, class... Arguments>
struct Detach<Row, int (*)(Arguments...)> {
  static int call(Arguments... arguments) {
    requests::start_deferred();
    const int code = Row::native_function()(arguments...);
    if (code != MPI_SUCCESS) return code;
    auto* const address = static_cast<void**>(std::get<sizeof...(Arguments) - 2>(std::tie(arguments...)));
    *address = replaced().give_back(*address);
    return code;
  }
};

}  // namespace

namespace entry {

#define GAPLESS_ATTACHED_BUFFERS(form, name) \
  GAPLESS_IF_DECLARED(name, const decltype(Native::name) name = form<table::rows::name>::call;)

GAPLESS_ATTACHED_BUFFERS(Attach, Buffer_attach)
GAPLESS_ATTACHED_BUFFERS(Attach, Buffer_attach_c)
GAPLESS_ATTACHED_BUFFERS(Attach, Comm_attach_buffer)
GAPLESS_ATTACHED_BUFFERS(Attach, Comm_attach_buffer_c)
GAPLESS_ATTACHED_BUFFERS(Attach, Session_attach_buffer)
GAPLESS_ATTACHED_BUFFERS(Attach, Session_attach_buffer_c)
GAPLESS_ATTACHED_BUFFERS(Detach, Buffer_detach)
GAPLESS_ATTACHED_BUFFERS(Detach, Buffer_detach_c)
GAPLESS_ATTACHED_BUFFERS(Detach, Comm_detach_buffer)
GAPLESS_ATTACHED_BUFFERS(Detach, Comm_detach_buffer_c)
GAPLESS_ATTACHED_BUFFERS(Detach, Session_detach_buffer)
GAPLESS_ATTACHED_BUFFERS(Detach, Session_detach_buffer_c)

}  // namespace entry
}  // namespace gapless::mpi
