#include "endpoints/delivery/bytes.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

#include "endpoints/delivery/progress.hpp"
#include "fabric/attached_memory.hpp"
#include "mpi/calls/staged/byte_types.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "transfer/packing.hpp"
#include "transfer/parts.hpp"

namespace gapless::mpi::endpoints {
namespace {

int code_of(transfer::Result result) noexcept {
  return result == transfer::Result::ok              ? MPI_SUCCESS
         : result == transfer::Result::out_of_memory ? MPI_ERR_NO_MEM
                                                     : MPI_ERR_OTHER;
}

}  // namespace

std::unique_ptr<std::byte[]> allocate(MPI_Count bytes) noexcept {
  return std::unique_ptr<std::byte[]>(new (std::nothrow)
                                          std::byte[static_cast<std::size_t>(std::max<MPI_Count>(bytes, 1))]);
}

int set_buffer(Operation& operation, Endpoint& endpoint, const Data& data) noexcept {
  operation.endpoint = &endpoint;
  if (is_plain(data, operation.run, operation.bytes)) return MPI_SUCCESS;
  operation.run = nullptr;
  if (data.count < 0) return MPI_ERR_COUNT;
  if (data.datatype == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
  operation.bytes = 0;
  if (data.count == 0) return MPI_SUCCESS;
  operation.buffer = identify(data.memory, data.count, data.datatype, Purpose::message, Analysis::now);
  if (operation.buffer.is_described()) {
    const transfer::Buffer& buffer = operation.buffer.buffer;
    operation.bytes = buffer.size();
    if (buffer.location.kind == device::MemoryKind::device) note_gpu(buffer.location.device);
    if (buffer.location.is_cpu_addressable() && buffer.type->contiguous_repeats)
      operation.run = static_cast<std::byte*>(const_cast<void*>(address_of(buffer.memory, buffer.type->layout->base)));
    return MPI_SUCCESS;
  }
  if (operation.buffer.opaque) return MPI_ERR_TYPE;
  const MPI_Count size = runtime::is_usable(data.datatype) ? runtime::size_of(data.datatype) : -1;
  return size < 0 ? MPI_ERR_TYPE : size == 0 ? MPI_SUCCESS : MPI_ERR_BUFFER;
}

int pack_all(const Operation& operation, std::byte* packed) noexcept {
  if (operation.bytes == 0) return MPI_SUCCESS;
  if (is_one_run(operation)) {
    copy_bytes(packed, operation.run, static_cast<std::size_t>(operation.bytes));
    return MPI_SUCCESS;
  }
  return code_of(transfer::pack(operation.buffer.buffer, packed, {}));
}

int unpack_first_of_parts(const Operation& operation, const std::byte* packed, MPI_Count bytes) noexcept {
  const transfer::Buffer& buffer = operation.buffer.buffer;
  if (bytes == buffer.size()) return code_of(transfer::unpack(buffer, packed, {}));
  return code_of(transfer::move_range(pack::Direction::unpack, buffer, 0, bytes, const_cast<std::byte*>(packed), {}));
}

int copy_between(const Operation& from, const Operation& to) noexcept {
  if (from.bytes == 0) return MPI_SUCCESS;
  const MPI_Count bytes = std::min(from.bytes, to.bytes);
  if (is_one_run(from)) return unpack_first(to, from.run, bytes);
  if (is_one_run(to) && bytes == from.bytes) return pack_all(from, to.run);
  const bool on_host =
      from.buffer.buffer.location.is_cpu_addressable() && to.buffer.buffer.location.is_cpu_addressable();
  if (on_host && from.bytes == to.bytes) return code_of(transfer::copy_on_host(from.buffer.buffer, to.buffer.buffer));
  const auto packed = allocate(from.bytes);
  if (packed == nullptr) return MPI_ERR_NO_MEM;
  const int code = pack_all(from, packed.get());
  return code != MPI_SUCCESS ? code : unpack_first(to, packed.get(), bytes);
}

namespace {

/// By the thread that has lent the bytes, and by its process where the thread has ended.
bool read_lent(const Lender& lender, const std::byte* from, std::byte* to, MPI_Count how_many) noexcept {
  const auto bytes = static_cast<std::size_t>(how_many);
  const pid_t thread = lender.loan.lender;
  const bool is_read = fabric::read_attached(thread, from, to, bytes) &&
                       (thread == lender.process || fabric::is_thread_of(lender.process, thread));
  return is_read || fabric::read_attached(lender.process, from, to, bytes);
}

/// Both processes copy, where there are enough bytes.
bool copy_with_sender(const Lender& lender, const std::byte* from, std::byte* to, MPI_Count bytes) noexcept {
  Loan& loan = lender.loan;
  const auto read = [&](Loan::Piece piece) {
    return read_lent(lender, from + piece.begin, to + piece.begin, piece.bytes);
  };
  const MPI_Count piece_bytes = Loan::piece_bytes_for(lender.endpoints);
  if (bytes < 2 * piece_bytes) return read({0, bytes});
  loan.offer(to, bytes, piece_bytes);
  bool is_read = true;
  MPI_Count taken = 0;
  for (Loan::Piece piece; (piece = loan.begin_piece()).bytes != 0; ++taken) is_read = read(piece) && is_read;
  // The sender is in the middle of one piece at most.
  for (unsigned rounds = 1; !loan.are_copied(taken); ++rounds) rounds % 64 == 0 ? std::this_thread::yield() : pause();
  return is_read && (!loan.is_refused.load(std::memory_order_relaxed) || read({0, bytes}));
}

}  // namespace

int copy_from_process(const Lender& lender, const std::byte* from, const Operation& to, MPI_Count bytes) noexcept {
  if (bytes == 0) return MPI_SUCCESS;
  if (is_one_run(to)) return copy_with_sender(lender, from, to.run, bytes) ? MPI_SUCCESS : MPI_ERR_OTHER;
  const auto packed = allocate(bytes);
  if (packed == nullptr) return MPI_ERR_NO_MEM;
  if (!copy_with_sender(lender, from, packed.get(), bytes)) return MPI_ERR_OTHER;
  return unpack_first(to, packed.get(), bytes);
}

int copy_data(Endpoint& endpoint, const Data& from, const Data& to) noexcept {
  Operation source, target;
  int code = set_buffer(source, endpoint, from);
  if (code == MPI_SUCCESS) code = set_buffer(target, endpoint, to);
  if (code != MPI_SUCCESS) return code;
  const bool fits = source.bytes <= target.bytes;
  code = copy_between(source, target);
  return code == MPI_SUCCESS && !fits ? MPI_ERR_TRUNCATE : code;
}

std::unique_ptr<std::byte[]> packed_copy(const Operation& operation) noexcept {
  auto packed = allocate(operation.bytes);
  if (packed != nullptr && pack_all(operation, packed.get()) != MPI_SUCCESS) packed.reset();
  return packed;
}

}  // namespace gapless::mpi::endpoints
