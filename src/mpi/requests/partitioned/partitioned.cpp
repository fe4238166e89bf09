// Partitioned messages. The program's handle is the library's own partitioned request on a packed buffer with the same
// number of partitions.
#include <memory>
#include <new>

#include "mpi/calls/message_call.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/new_request.hpp"
#include "mpi/requests/outstanding.hpp"
#include "mpi/requests/partitioned/partitions.hpp"
#include "mpi/table/entry_points.hpp"

#if GAPLESS_DECLARED_Psend_init

namespace gapless::mpi {
namespace requests {
namespace {

/// Puts the message under the library's request for its packed bytes.
template <class Row>
int initialize_ours(std::unique_ptr<Partitions> message, int partitions, int peer, int tag, MPI_Comm communicator,
                    MPI_Info info, MPI_Request* request) noexcept {
  Pending* pending = acquire();
  if (pending == nullptr)
    return raise_on_communicator(communicator, transfer_failure(Row::name, transfer::Result::out_of_memory));
  const auto call_library = [&] {
    return Row::native_function()(message->packed(), partitions, message->bytes(), MPI_PACKED, peer, tag, communicator,
                                  info, request);
  };
  int code = MPI_SUCCESS;
  if (!call_makes_request(request, code, call_library)) {
    release(pending);
    return code;
  }
  pending->make<std::unique_ptr<Partitions>>(std::move(message));
  pending->is_persistent = true;
  pending->function = Row::name;
  pending->error_object = ErrorObject::of_communicator(communicator);
  add(pending, *request);
  return code;
}

template <class Row, transfer::Side side, class Memory>
int initialize(Memory* memory, int partitions, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
               MPI_Comm communicator, MPI_Info info, MPI_Request* request) {
  const auto call_library = [&] {
    return Row::native_function()(memory, partitions, count, datatype, peer, tag, communicator, info, request);
  };
  if (peer == MPI_PROC_NULL || request == nullptr) return call_library();
  std::unique_ptr<Partitions> message(new (std::nothrow) Partitions(
      side, const_cast<void*>(static_cast<const void*>(memory)), partitions, count, datatype));
  if (message == nullptr) return call_library();
  if (void* const bytes = message->bytes_in_place())
    return Row::native_function()(bytes, partitions, message->bytes(), MPI_PACKED, peer, tag, communicator, info,
                                  request);
  if (message->owner() == Owner::library) return call_library();
  if (message->owner() == Owner::unserved)
    return raise_on_communicator(communicator, unserved_gpu_memory(Row::name, message->gpu()));
  const transfer::Result result = message->reserve();
  if (result != transfer::Result::ok) return raise_on_communicator(communicator, transfer_failure(Row::name, result));
  return initialize_ours<Row>(std::move(message), partitions, peer, tag, communicator, info, request);
}

/// Packs partitions partition_of(0) to partition_of(number - 1), and then lets the library send them.
template <class PartitionOf, class CallLibrary>
int make_ready(MPI_Request request, int number, PartitionOf partition_of, CallLibrary call_library) noexcept {
  Pending* pending = are_none() ? nullptr : find(request);
  if (Partitions* message = pending == nullptr ? nullptr : pending->partitions()) {
    for (int k = 0; k < number; ++k) {
      const transfer::Result result = message->pack(partition_of(k));
      if (result != transfer::Result::ok) return pending->raise(transfer_failure(pending->function, result));
    }
  }
  return call_library();
}

int ready(int partition, MPI_Request request) {
  return make_ready(
      request, 1, [&](int) { return partition; }, [&] { return native.Pready(partition, request); });
}

int ready_range(int low, int high, MPI_Request request) {
  return make_ready(
      request, high - low + 1, [&](int k) { return low + k; }, [&] { return native.Pready_range(low, high, request); });
}

// Open MPI declares the list as not constant.
template <class Partition>
int ready_list(int length, Partition* partitions, MPI_Request request) {
  return make_ready(
      request, length, [&](int k) { return partitions[k]; },
      [&] { return native.Pready_list(length, partitions, request); });
}

int arrived(MPI_Request request, int partition, int* flag) {
  start_deferred();
  const int code = native.Parrived(request, partition, flag);
  if (are_none() || code != MPI_SUCCESS || *flag == 0) return code;
  Pending* pending = find(request);
  Partitions* message = pending == nullptr ? nullptr : pending->partitions();
  if (message == nullptr) return code;
  bool is_there = false;
  const transfer::Result result = message->unpack(partition, is_there);
  if (result != transfer::Result::ok) return pending->raise(transfer_failure(pending->function, result));
  *flag = is_there ? 1 : 0;
  return code;
}

}  // namespace
}  // namespace requests

namespace entry {

const decltype(Native::Psend_init) Psend_init = requests::initialize<table::rows::Psend_init, transfer::Side::sender>;
const decltype(Native::Precv_init) Precv_init = requests::initialize<table::rows::Precv_init, transfer::Side::receiver>;
const decltype(Native::Pready) Pready = requests::ready;
const decltype(Native::Pready_range) Pready_range = requests::ready_range;
const decltype(Native::Pready_list) Pready_list = requests::ready_list;
const decltype(Native::Parrived) Parrived = requests::arrived;

}  // namespace entry
}  // namespace gapless::mpi

#endif
