#include "mpi/calls/by_library.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include "mpi/calls/user_buffer.hpp"
#include "mpi/headers/matched.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi::by_library {
namespace {

constexpr std::size_t most_bytes = std::numeric_limits<int>::max();

struct Element {
  explicit Element(MPI_Datatype datatype) noexcept {
    MPI_Count lower = 0;
    native.Type_size_x(datatype, &size);
    native.Type_get_extent_x(datatype, &lower, &extent);
  }
  /// As many as a call takes, whose arguments are int.
  MPI_Count at_once() const noexcept { return std::max<MPI_Count>(static_cast<MPI_Count>(most_bytes) / size, 1); }
  const void* after(const void* memory, MPI_Count count) const noexcept {
    return address_of(memory, static_cast<std::intptr_t>(count * extent));
  }
  MPI_Count size = 0, extent = 0;
};

/// The beginning of an element, as a message of the process to itself.
int receive_part(const std::byte* packed, int bytes, void* memory, MPI_Datatype datatype) noexcept {
  // Messages of several threads must not meet.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  constexpr int tag = headers::tag_of_parts;
  return native.Sendrecv(packed, bytes, MPI_BYTE, 0, tag, memory, 1, datatype, 0, tag, runtime::own_communicator(),
                         MPI_STATUS_IGNORE);
}

}  // namespace

int unpack(const std::byte* packed, std::size_t bytes, void* memory, MPI_Datatype datatype) noexcept {
  const Element element(datatype);
  const auto size = static_cast<std::size_t>(element.size);
  if (size == 0) return MPI_SUCCESS;
  const auto whole = static_cast<MPI_Count>(bytes / size);
  for (MPI_Count done = 0; done < whole;) {
    const MPI_Count count = std::min(whole - done, element.at_once());
    int position = 0;
    const int code = native.Unpack(
        packed + static_cast<std::size_t>(done) * size, static_cast<int>(count * element.size), &position,
        const_cast<void*>(element.after(memory, done)), static_cast<int>(count), datatype, runtime::own_communicator());
    if (code != MPI_SUCCESS) return code;
    done += count;
  }
  const std::size_t rest = bytes % size;
  if (rest == 0) return MPI_SUCCESS;
  return receive_part(packed + (bytes - rest), static_cast<int>(rest), const_cast<void*>(element.after(memory, whole)),
                      datatype);
}

int pack(const void* memory, MPI_Count count, MPI_Datatype datatype, std::byte* packed) noexcept {
  const Element element(datatype);
  for (MPI_Count done = 0; done < count && element.size != 0;) {
    const MPI_Count now = std::min(count - done, element.at_once());
    int position = 0;
    const int code =
        native.Pack(element.after(memory, done), static_cast<int>(now), datatype, packed + done * element.size,
                    static_cast<int>(now * element.size), &position, runtime::own_communicator());
    if (code != MPI_SUCCESS) return code;
    done += now;
  }
  return MPI_SUCCESS;
}

}  // namespace gapless::mpi::by_library
