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
  /// How many elements a call with int arguments takes; 1 for a longer element, which takes a call of large counts.
  MPI_Count at_once() const noexcept { return std::max<MPI_Count>(static_cast<MPI_Count>(most_bytes) / size, 1); }
  const void* after(const void* memory, MPI_Count count) const noexcept {
    return address_of(memory, static_cast<std::intptr_t>(count * extent));
  }
  MPI_Count size = 0, extent = 0;
};

/// Unpacks as many elements as one call takes.
int unpack_whole(const std::byte* packed, MPI_Count bytes, void* memory, MPI_Count count,
                 MPI_Datatype datatype) noexcept {
#if GAPLESS_DECLARED_Unpack_c
  if (native.Unpack_c != nullptr) {
    MPI_Count position = 0;
    return native.Unpack_c(packed, bytes, &position, memory, count, datatype, runtime::own_communicator());
  }
#endif
  int position = 0;
  return native.Unpack(packed, static_cast<int>(bytes), &position, memory, static_cast<int>(count), datatype,
                       runtime::own_communicator());
}

int pack_whole(const void* memory, MPI_Count count, MPI_Datatype datatype, std::byte* packed,
               MPI_Count bytes) noexcept {
#if GAPLESS_DECLARED_Pack_c
  if (native.Pack_c != nullptr) {
    MPI_Count position = 0;
    return native.Pack_c(memory, count, datatype, packed, bytes, &position, runtime::own_communicator());
  }
#endif
  int position = 0;
  return native.Pack(memory, static_cast<int>(count), datatype, packed, static_cast<int>(bytes), &position,
                     runtime::own_communicator());
}

/// Unpacks the beginning of an element, by a message of the process to itself.
int receive_part(const std::byte* packed, MPI_Count bytes, void* memory, MPI_Datatype datatype) noexcept {
  // Messages of several threads must not meet.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  constexpr int tag = headers::tag_of_parts;
#if GAPLESS_DECLARED_Sendrecv_c
  if (native.Sendrecv_c != nullptr) {
    return native.Sendrecv_c(packed, bytes, MPI_BYTE, 0, tag, memory, 1, datatype, 0, tag, runtime::own_communicator(),
                             MPI_STATUS_IGNORE);
  }
#endif
  return native.Sendrecv(packed, static_cast<int>(bytes), MPI_BYTE, 0, tag, memory, 1, datatype, 0, tag,
                         runtime::own_communicator(), MPI_STATUS_IGNORE);
}

}  // namespace

int unpack(const std::byte* packed, std::size_t bytes, void* memory, MPI_Datatype datatype) noexcept {
  const Element element(datatype);
  const auto size = static_cast<std::size_t>(element.size);
  if (size == 0) return MPI_SUCCESS;
  const auto whole = static_cast<MPI_Count>(bytes / size);
  for (MPI_Count done = 0; done < whole;) {
    const MPI_Count count = std::min(whole - done, element.at_once());
    const int code = unpack_whole(packed + static_cast<std::size_t>(done) * size, count * element.size,
                                  const_cast<void*>(element.after(memory, done)), count, datatype);
    if (code != MPI_SUCCESS) return code;
    done += count;
  }
  const std::size_t rest = bytes % size;
  if (rest == 0) return MPI_SUCCESS;
  return receive_part(packed + (bytes - rest), static_cast<MPI_Count>(rest),
                      const_cast<void*>(element.after(memory, whole)), datatype);
}

int pack(const void* memory, MPI_Count count, MPI_Datatype datatype, std::byte* packed) noexcept {
  const Element element(datatype);
  for (MPI_Count done = 0; done < count && element.size != 0;) {
    const MPI_Count now = std::min(count - done, element.at_once());
    const int code =
        pack_whole(element.after(memory, done), now, datatype, packed + done * element.size, now * element.size);
    if (code != MPI_SUCCESS) return code;
    done += now;
  }
  return MPI_SUCCESS;
}

}  // namespace gapless::mpi::by_library
