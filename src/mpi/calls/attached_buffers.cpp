// Buffers that a program attaches for its buffered sends. Where one is GPU memory, which no library can write to, the
// library gets host memory of the same size in its place, and the program its own address back.
//
// Where MPI ends the attachment itself (MPI_Comm_free, MPI_Session_finalize), the host memory stays until the process
// ends: nobody tells when the last message has left it.
#include <cstddef>
#include <mutex>
#include <new>
#include <tuple>

#include "device/device.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/rows.hpp"

namespace gapless::mpi {
namespace {

/// What precedes host memory that stands for GPU memory.
struct alignas(std::max_align_t) Replacement {
  Replacement* next;
  void* gpu_memory;
};
constinit std::mutex mutex;  ///< guards the list
constinit Replacement* first = nullptr;

/// Host memory in the place of GPU memory; null if there is none.
void* replace(void* gpu_memory, std::size_t bytes) noexcept {
  void* const memory = ::operator new(sizeof(Replacement) + bytes, std::nothrow);
  if (memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex);
  first = new (memory) Replacement{first, gpu_memory};
  return first + 1;
}

/// Frees host memory of replace(). Gives back what `buffer` stands for, or `buffer` if that is the program's own.
void* give_back(void* buffer) noexcept {
  const std::lock_guard lock(mutex);
  for (Replacement** place = &first; *place != nullptr; place = &(*place)->next) {
    Replacement* const found = *place;
    if (found + 1 != buffer) continue;
    void* const gpu_memory = found->gpu_memory;
    *place = found->next;
    ::operator delete(found);
    return gpu_memory;
  }
  return buffer;
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
    if (bytes <= 0 || !device::in_use() || !is_gpu_memory(buffer)) return Row::native_function()(arguments...);
    void* const host = replace(buffer, static_cast<std::size_t>(bytes));
    if (host == nullptr) return table::raise<Row>(MPI_ERR_NO_MEM, all);
    buffer = host;
    const int code = std::apply(Row::native_function(), all);
    if (code != MPI_SUCCESS) give_back(host);
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
    auto* const address = static_cast<void**>(std::get<sizeof...(Arguments) - 2>(std::tie(arguments...)));
    // MPICH says MPI_SUCCESS after an error handler of the program.
    if (code == MPI_SUCCESS && address != nullptr) *address = give_back(*address);
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
