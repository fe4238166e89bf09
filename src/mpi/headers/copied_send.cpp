#include "mpi/headers/copied_send.hpp"

#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "mpi/calls/user_buffer.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/outstanding.hpp"
#include "mpi/requests/pending.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi::headers {
namespace {

/// Keeps the bytes until they are sent.
class Kept : public requests::Work {
 public:
  Kept(transfer::PoolBuffer bytes, transfer::PoolBuffer memory) noexcept
      : bytes_(std::move(bytes)), memory_(std::move(memory)) {}
  int finish(ReceivedStatus&) noexcept override { return MPI_SUCCESS; }

 private:
  transfer::PoolBuffer bytes_, memory_;
};

/// Sends the `size` bytes that the memory is packed into. Count is int or MPI_Count.
template <auto pack, auto isend, class Count>
int pack_and_send(const SendArguments<MPI_Count>& out, std::byte* bytes, MPI_Count size,
                  MPI_Request* request) noexcept {
  Count position = 0;
  const int code = (*pack)(out.memory, static_cast<Count>(out.count), out.datatype, bytes, static_cast<Count>(size),
                           &position, out.communicator);
  if (code != MPI_SUCCESS) return code;
  return (native.*isend)(bytes, static_cast<Count>(size), MPI_PACKED, out.destination, out.tag, out.communicator,
                         request);
}

}  // namespace

int CopiedSend::begin(const SendArguments<MPI_Count>& out) noexcept {
  requests::start_deferred();
  communicator_ = out.communicator;
  const auto raise = [&out](int code) { return raise_on_communicator(out.communicator, code); };
  MPI_Count size = 0, all = 0;
  native.Type_size_x(out.datatype, &size);
  if (out.destination == MPI_PROC_NULL || size <= 0 || out.count <= 0)
    return native.Isend(nullptr, 0, MPI_PACKED, out.destination, out.tag, out.communicator, &request_);
  if (__builtin_mul_overflow(size, out.count, &all)) return raise(MPI_ERR_COUNT);
  bytes_ = transfer::PoolBuffer(device::MemoryKind::host, -1, static_cast<std::size_t>(all));
  if (!bytes_) return raise(MPI_ERR_NO_MEM);
  const std::shared_ptr<const transfer::Described> described = type_cache::find(out.datatype)->described;
  if (described != nullptr && would_lose_elements(static_cast<std::size_t>(all), *described))
    return begin_whole(out, all);
  if (all <= std::numeric_limits<int>::max())
    return pack_and_send<&entry::Pack, &Native::Isend, int>(out, bytes_.data(), all, &request_);
  GAPLESS_IF_DECLARED(Isend_c,
                      if (native.Isend_c != nullptr) return pack_and_send<&entry::Pack_c, &Native::Isend_c, MPI_Count>(
                          out, bytes_.data(), all, &request_);)
  return raise(MPI_ERR_COUNT);
}

/// For a datatype whose packed bytes the library would cut where the receiver cannot put them together: copies the
/// memory in its own layout, and sends the copy as elements of the datatype.
int CopiedSend::begin_whole(const SendArguments<MPI_Count>& out, MPI_Count size) noexcept {
  const auto raise = [&out](int code) { return raise_on_communicator(out.communicator, code); };
  MPI_Count lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  native.Type_get_extent_x(out.datatype, &lower, &extent);
  native.Type_get_true_extent_x(out.datatype, &true_lower, &true_extent);
  MPI_Count span = 0;
  const bool is_too_long = size > std::numeric_limits<int>::max();
  if (is_too_long || __builtin_mul_overflow(std::abs(extent), out.count - 1, &span)) return raise(MPI_ERR_COUNT);
  const MPI_Count first = true_lower + (extent < 0 ? -span : 0);
  memory_ = transfer::PoolBuffer(device::MemoryKind::host, -1, static_cast<std::size_t>(span + true_extent));
  if (!memory_) return raise(MPI_ERR_NO_MEM);
  void* const copy = const_cast<void*>(address_of(memory_.data(), static_cast<std::intptr_t>(-first)));
  const int elements = static_cast<int>(out.count), bytes = static_cast<int>(size);
  int position = 0;
  int code = entry::Pack(out.memory, elements, out.datatype, bytes_.data(), bytes, &position, out.communicator);
  position = 0;
  if (code == MPI_SUCCESS)
    code = entry::Unpack(bytes_.data(), bytes, &position, copy, elements, out.datatype, out.communicator);
  if (code != MPI_SUCCESS) return code;
  return native.Isend(copy, elements, out.datatype, out.destination, out.tag, out.communicator, &request_);
}

int CopiedSend::wait() noexcept { return native.Wait(&request_, MPI_STATUS_IGNORE); }

void CopiedSend::leave() noexcept {
  requests::Pending* const pending = requests::acquire();
  auto* const kept = pending != nullptr ? new (std::nothrow) Kept(std::move(bytes_), std::move(memory_)) : nullptr;
  if (kept == nullptr) {
    // The library reads the bytes until they are sent. Without memory to keep them, the call waits.
    if (pending != nullptr) requests::release(pending);
    static_cast<void>(wait());
    return;
  }
  pending->make<std::unique_ptr<requests::Work>>(kept);
  pending->error_object = ErrorObject::of_communicator(communicator_);
  requests::add_freed(pending, request_);
}

}  // namespace gapless::mpi::headers
