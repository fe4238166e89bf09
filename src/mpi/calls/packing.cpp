// MPI_Pack and MPI_Unpack. The packed format of both libraries is the bytes of the layout, one after the other. So the
// library can unpack what gapless packs, and the other way about.
//
// A call that might be an error (a negative count, a short buffer, a null communicator) goes to the library, which
// raises the error.
#include "transfer/packing.hpp"

#include <cstddef>

#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/entry_points.hpp"
#include "transfer/choice/choose.hpp"

namespace gapless::mpi {
namespace {

using transfer::Result;

// The two memories of a call, and whose business the movement between them is.
struct Packing {
  device::Location packed;
  UserBuffer user;
  Owner owner;

  Packing(const void* memory, MPI_Count count, MPI_Datatype datatype, const void* packed_memory) noexcept
      : packed(device::in_use() ? device::locate(packed_memory) : device::Location{}),
        user(identify(memory, count, datatype, Purpose::packing,
                      is_packed_in_gpu() ? Analysis::now : Analysis::when_it_pays)),
        owner(decide()) {}

  bool is_packed_in_gpu() const noexcept { return packed.kind == device::MemoryKind::device; }
  bool has_gpu_memory() const noexcept { return is_packed_in_gpu() || user.is_gpu_memory(); }
  int gpu() const noexcept { return is_packed_in_gpu() ? packed.device : user.buffer.location.device; }

  Owner decide() const noexcept {
    if (!is_packed_in_gpu()) {
      const Owner whose = owner_of(user);
      if (whose != Owner::ours || user.is_gpu_memory()) return whose;
      return transfer::choose_packing(user.buffer) == transfer::Scheme::native ? Owner::library : Owner::ours;
    }
    if (user.is_described()) return Owner::ours;
    return user.opaque && !runtime::library_reads_gpu_memory() ? Owner::unserved : Owner::library;
  }
};

template <class Count>
bool fits(const void* packed, Count packed_size, const Count* position, layout::Offset bytes) noexcept {
  return packed != nullptr && position != nullptr && *position >= 0 && *position <= packed_size &&
         bytes <= packed_size - *position;
}

// The communicator of this thread's last call, which needs no further check.
constinit thread_local MPI_Comm accepted_communicator [[gnu::tls_model("initial-exec")]] = {};

/// Does the library accept the communicator? If not, the call returns `code`: the error that the library has raised, or
/// MPI_SUCCESS after an error handler of the program has returned. `move_byte` calls the library's function to move one
/// byte between buffers of `size` bytes.
template <class Count, class MoveByte>
bool accepts_communicator(MPI_Comm communicator, int& code, MoveByte move_byte) noexcept {
  // A handle that the program has never set may equal the value for no communicator.
  if (communicator == accepted_communicator && communicator != MPI_Comm{}) [[likely]]
    return true;
  char from[8] = {}, to[8] = {};
  Count position = 0;
  code = move_byte(from, to, Count{sizeof from}, &position);
  if (code != MPI_SUCCESS || position != 1) return false;
  accepted_communicator = communicator;
  return true;
}

/// Moves bytes at *position of the packed buffer by `move()`, and moves *position behind them.
template <auto function, class Count, class Move>
int move_packed(const Packing& packing, Count* position, MPI_Comm communicator, Move move) noexcept {
  const Result result = move();
  if (result != Result::ok) return raise_on_communicator(communicator, transfer_failure(name_of<function>, result));
  *position = static_cast<Count>(*position + packing.user.buffer.size());
  return MPI_SUCCESS;
}

/// Ends a call that gapless does not carry out, because it cannot, or because the call may be an error: `code` is the
/// result then. `call_library()` makes the program's call.
template <auto function, class Count, class CallLibrary>
bool is_left(const Packing& packing, const void* packed, Count packed_size, const Count* position,
             MPI_Comm communicator, int& code, CallLibrary call_library) {
  const auto raise = [&](int error) { return raise_on_communicator(communicator, error); };
  const bool is_library_asked = packing.owner == Owner::library || communicator == MPI_COMM_NULL;
  if (packing.owner == Owner::unserved) {
    code = raise(unserved_gpu_memory(name_of<function>, packing.gpu()));
  } else if (!is_library_asked && fits(packed, packed_size, position, packing.user.buffer.size())) {
    return false;
  } else if (!is_library_asked && packing.has_gpu_memory() && packed != nullptr && position != nullptr) {
    // MPICH moves what fits, and would touch GPU memory.
    code = raise(MPI_ERR_TRUNCATE);
  } else {
    code = call_library();
  }
  return true;
}

template <auto function, class Count>
[[gnu::noinline]] int pack_slowly(const void* memory, Count count, MPI_Datatype datatype, void* packed,
                                  Count packed_size, Count* position, MPI_Comm communicator) {
  const Packing packing(memory, count, datatype, packed);
  int code = MPI_SUCCESS;
  if (is_left<function>(packing, packed, packed_size, position, communicator, code, [&] {
        return (native.*function)(memory, count, datatype, packed, packed_size, position, communicator);
      })) {
    return code;
  }
  if (!accepts_communicator<Count>(communicator, code, [&](char* from, char* to, Count size, Count* start) {
        return (native.*function)(from, Count{1}, MPI_BYTE, to, size, start, communicator);
      })) {
    return code;
  }
  return move_packed<function>(packing, position, communicator, [&] {
    return transfer::pack(packing.user.buffer, static_cast<std::byte*>(packed) + *position, packing.packed);
  });
}

template <auto function, class Count>
[[gnu::noinline]] int unpack_slowly(const void* packed, Count packed_size, Count* position, void* memory, Count count,
                                    MPI_Datatype datatype, MPI_Comm communicator) {
  const Packing packing(memory, count, datatype, packed);
  int code = MPI_SUCCESS;
  if (is_left<function>(packing, packed, packed_size, position, communicator, code, [&] {
        return (native.*function)(packed, packed_size, position, memory, count, datatype, communicator);
      })) {
    return code;
  }
  if (!accepts_communicator<Count>(communicator, code, [&](char* from, char* to, Count size, Count* start) {
        return (native.*function)(from, size, start, to, Count{1}, MPI_BYTE, communicator);
      })) {
    return code;
  }
  return move_packed<function>(packing, position, communicator, [&] {
    return transfer::unpack(packing.user.buffer, static_cast<const std::byte*>(packed) + *position, packing.packed);
  });
}

bool is_native(const void* memory, MPI_Count count, MPI_Datatype datatype, const void* packed) noexcept {
  return goes_straight_through<Purpose::packing>(memory, count, datatype) &&
         !(device::in_use() && is_gpu_memory(packed));
}

template <auto function, class Count>
[[gnu::noinline]] int pack_unseen(const void* memory, Count count, MPI_Datatype datatype, void* packed,
                                  Count packed_size, Count* position, MPI_Comm communicator) {
  if (is_native(memory, count, datatype, packed)) {
    return (native.*function)(memory, count, datatype, packed, packed_size, position, communicator);
  }
  return pack_slowly<function>(memory, count, datatype, packed, packed_size, position, communicator);
}

template <auto function, class Count>
[[gnu::noinline]] int unpack_unseen(const void* packed, Count packed_size, Count* position, void* memory, Count count,
                                    MPI_Datatype datatype, MPI_Comm communicator) {
  if (is_native(memory, count, datatype, packed)) {
    return (native.*function)(packed, packed_size, position, memory, count, datatype, communicator);
  }
  return unpack_slowly<function>(packed, packed_size, position, memory, count, datatype, communicator);
}

// The shim's slots lead here. Tail calls alone, so that no register is saved.

template <auto function, class Count>
int pack(const void* memory, Count count, MPI_Datatype datatype, void* packed, Count packed_size, Count* position,
         MPI_Comm communicator) {
  if (goes_straight_through_at_a_glance<Purpose::packing>(count, datatype, packed_size)) [[likely]] {
    return (native.*function)(memory, count, datatype, packed, packed_size, position, communicator);
  }
  return pack_unseen<function>(memory, count, datatype, packed, packed_size, position, communicator);
}

template <auto function, class Count>
int unpack(const void* packed, Count packed_size, Count* position, void* memory, Count count, MPI_Datatype datatype,
           MPI_Comm communicator) {
  if (goes_straight_through_at_a_glance<Purpose::packing>(count, datatype, packed_size)) [[likely]] {
    return (native.*function)(packed, packed_size, position, memory, count, datatype, communicator);
  }
  return unpack_unseen<function>(packed, packed_size, position, memory, count, datatype, communicator);
}

}  // namespace

namespace entry {

const decltype(Native::Pack) Pack = pack<&Native::Pack>;
const decltype(Native::Unpack) Unpack = unpack<&Native::Unpack>;
GAPLESS_IF_DECLARED(Pack_c, const decltype(Native::Pack_c) Pack_c = pack<&Native::Pack_c>;)
GAPLESS_IF_DECLARED(Unpack_c, const decltype(Native::Unpack_c) Unpack_c = unpack<&Native::Unpack_c>;)

}  // namespace entry
}  // namespace gapless::mpi
