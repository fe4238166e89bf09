// Blocking collectives over endpoints, made of messages in a context of their own: whatever can be sent can be in them,
// and endpoints of one process copy from buffer to buffer. Trees and rings of plain kind.
//
// Reductions combine neighbouring ranges of ranks only, so operations that do not commute get their order.
#include <cstddef>
#include <memory>
#include <new>

#include "endpoints/calls/calls.hpp"
#include "endpoints/inner.hpp"
#include "mpi/calls/user_buffer.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

int size_of(const Endpoint& endpoint) noexcept { return endpoint.communicator->size(); }

bool is_rank(const Endpoint& endpoint, int rank) noexcept { return rank >= 0 && rank < size_of(endpoint); }

/// Elements of a datatype somewhere in an array of them.
struct Array {
  const void* memory;
  MPI_Datatype datatype;
  MPI_Count extent = 0;

  Array(const void* start, MPI_Datatype type) noexcept : memory(start), datatype(type) {
    MPI_Count lower_bound = 0;
    if (type != MPI_DATATYPE_NULL) native.Type_get_extent_x(type, &lower_bound, &extent);
  }
  Part part(MPI_Count first, MPI_Count count) const noexcept {
    return {address_of(memory, static_cast<std::intptr_t>(first * extent)), count, datatype};
  }
};

int copy_part(Endpoint& endpoint, const Part& from, const Part& to) {
  return exchange_parts(endpoint, from, endpoint.rank, to, endpoint.rank);
}

Part token() noexcept { return {nullptr, 0, MPI_BYTE}; }

int broadcast(Endpoint& endpoint, const Part& part, int root) {
  const int size = size_of(endpoint);
  const int mine = (endpoint.rank - root + size) % size;
  int mask = 1;
  for (; mask < size; mask <<= 1) {
    if ((mine & mask) == 0) continue;
    if (const int code = receive_part(endpoint, part, (mine - mask + root) % size); code != MPI_SUCCESS) return code;
    break;
  }
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (mine + mask >= size) continue;
    if (const int code = send_part(endpoint, part, (mine + mask + root) % size); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// Every rank sends `out(peer)` to each and receives `in(peer)` from each.
template <class Out, class In>
int exchange_with_all(Endpoint& endpoint, Out out, In in) {
  const int size = size_of(endpoint);
  for (int step = 0; step < size; ++step) {
    const int to = (endpoint.rank + step) % size, from = (endpoint.rank - step + size) % size;
    if (const int code = exchange_parts(endpoint, out(to), to, in(from), from); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// The same where a part that is not to be moved to itself is left out.
template <class Out, class In>
int exchange_with_others(Endpoint& endpoint, Out out, In in) {
  const int size = size_of(endpoint);
  for (int step = 1; step < size; ++step) {
    const int to = (endpoint.rank + step) % size, from = (endpoint.rank - step + size) % size;
    if (const int code = exchange_parts(endpoint, out(to), to, in(from), from); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

template <class In>
int gather_parts(Endpoint& endpoint, const Part& mine, bool in_place, int root, In in) {
  if (endpoint.rank != root) return send_part(endpoint, mine, root);
  for (int rank = 0; rank < size_of(endpoint); ++rank) {
    if (rank == root && in_place) continue;
    const int code = rank == root ? copy_part(endpoint, mine, in(rank)) : receive_part(endpoint, in(rank), rank);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

template <class Out>
int scatter_parts(Endpoint& endpoint, Out out, bool in_place, int root, const Part& mine) {
  if (endpoint.rank != root) return receive_part(endpoint, mine, root);
  for (int rank = 0; rank < size_of(endpoint); ++rank) {
    if (rank == root && in_place) continue;
    const int code = rank == root ? copy_part(endpoint, out(rank), mine) : send_part(endpoint, out(rank), rank);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

bool is_null(MPI_Op operation) noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  return operation == nullptr;  // its MPI_OP_NULL is an object, which MPI_Reduce_local refuses
#else
  return operation == MPI_OP_NULL;
#endif
}

/// Memory for `count` elements.
class Elements {
 public:
  Elements(MPI_Count count, MPI_Datatype datatype) noexcept : count_(count), datatype_(datatype) {
    MPI_Count lower_bound = 0, extent = 0, true_lower_bound = 0, true_extent = 0;
    native.Type_get_extent_x(datatype, &lower_bound, &extent);
    native.Type_get_true_extent_x(datatype, &true_lower_bound, &true_extent);
    const MPI_Count last = extent * (count > 0 ? count - 1 : 0);
    const MPI_Count span = true_extent + (last < 0 ? -last : last);
    memory_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(span > 0 ? span : 1)]);
    first_ = const_cast<void*>(
        address_of(memory_.get(), static_cast<std::intptr_t>((last < 0 ? -last : 0) - true_lower_bound)));
  }
  explicit operator bool() const noexcept { return memory_ != nullptr; }
  Part part() const noexcept { return {first_, count_, datatype_}; }
  void* memory() const noexcept { return first_; }

 private:
  MPI_Count count_;
  MPI_Datatype datatype_;
  std::unique_ptr<std::byte[]> memory_;
  void* first_ = nullptr;
};

/// right = left op right
int combine(const void* left, void* right, int count, MPI_Datatype datatype, MPI_Op operation) noexcept {
  return inner.Reduce_local(left, right, count, datatype, operation);
}

/// Postcondition: at rank 0, `sum` points to the one of the two that has the result; before, to the caller's own
/// values.
int reduce_to_first(Endpoint& endpoint, Elements*& sum, Elements*& other, int count, MPI_Datatype datatype,
                    MPI_Op operation) {
  for (int mask = 1; mask < size_of(endpoint); mask <<= 1) {
    if ((endpoint.rank & mask) != 0) return send_part(endpoint, sum->part(), endpoint.rank - mask);
    if (endpoint.rank + mask >= size_of(endpoint)) continue;
    int code = receive_part(endpoint, other->part(), endpoint.rank + mask);
    if (code == MPI_SUCCESS) code = combine(sum->memory(), other->memory(), count, datatype, operation);
    if (code != MPI_SUCCESS) return code;
    std::swap(sum, other);
  }
  return MPI_SUCCESS;
}

int reduce(Endpoint& endpoint, const void* operand, void* result, int count, MPI_Datatype datatype, MPI_Op operation,
           int root) {
  if (count < 0) return MPI_ERR_COUNT;
  if (datatype == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
  if (is_null(operation)) return MPI_ERR_OP;
  Elements one(count, datatype), two(count, datatype);
  if (!one || !two) return MPI_ERR_NO_MEM;
  Elements *sum = &one, *other = &two;
  const void* const mine = operand == MPI_IN_PLACE ? result : operand;
  int code = copy_part(endpoint, {mine, count, datatype}, sum->part());
  if (code == MPI_SUCCESS) code = reduce_to_first(endpoint, sum, other, count, datatype, operation);
  if (code != MPI_SUCCESS) return code;
  const Part at_root{result, count, datatype};
  if (endpoint.rank == 0)
    return root == 0 ? copy_part(endpoint, sum->part(), at_root) : send_part(endpoint, sum->part(), root);
  return endpoint.rank == root ? receive_part(endpoint, at_root, 0) : MPI_SUCCESS;
}

/// Prefix reductions, along the ranks. `inclusive`: MPI_Scan, else MPI_Exscan.
int scan(Endpoint& endpoint, const void* operand, void* result, int count, MPI_Datatype datatype, MPI_Op operation,
         bool inclusive) {
  if (count < 0) return MPI_ERR_COUNT;
  if (datatype == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
  if (is_null(operation)) return MPI_ERR_OP;
  Elements before(count, datatype), sum(count, datatype);
  if (!before || !sum) return MPI_ERR_NO_MEM;
  const Part mine{operand == MPI_IN_PLACE ? result : operand, count, datatype}, out{result, count, datatype};
  int code = copy_part(endpoint, mine, sum.part());
  if (code == MPI_SUCCESS && endpoint.rank > 0) {
    code = receive_part(endpoint, before.part(), endpoint.rank - 1);
    if (code == MPI_SUCCESS) code = combine(before.memory(), sum.memory(), count, datatype, operation);
  }
  if (code == MPI_SUCCESS && endpoint.rank + 1 < size_of(endpoint))
    code = send_part(endpoint, sum.part(), endpoint.rank + 1);
  if (code != MPI_SUCCESS) return code;
  if (inclusive) return copy_part(endpoint, sum.part(), out);
  return endpoint.rank > 0 ? copy_part(endpoint, before.part(), out) : MPI_SUCCESS;
}

}  // namespace

int Barrier(Endpoint& endpoint, MPI_Comm) {
  const int size = size_of(endpoint);
  for (int step = 1; step < size; step <<= 1) {
    const int to = (endpoint.rank + step) % size, from = (endpoint.rank - step + size) % size;
    if (const int code = exchange_parts(endpoint, token(), to, token(), from); code != MPI_SUCCESS)
      return raise(endpoint, code);
  }
  return MPI_SUCCESS;
}

int Bcast(Endpoint& endpoint, void* memory, int count, MPI_Datatype datatype, int root, MPI_Comm) {
  if (!is_rank(endpoint, root)) return raise(endpoint, MPI_ERR_ROOT);
  return raise(endpoint, broadcast(endpoint, {memory, count, datatype}, root));
}

int Gather(Endpoint& endpoint, const void* from, int count, MPI_Datatype type, void* to, int each, MPI_Datatype to_type,
           int root, MPI_Comm) {
  if (!is_rank(endpoint, root)) return raise(endpoint, MPI_ERR_ROOT);
  const Array all(to, endpoint.rank == root ? to_type : MPI_DATATYPE_NULL);
  return raise(endpoint, gather_parts(endpoint, {from, count, type}, from == MPI_IN_PLACE, root,
                                      [&](int rank) { return all.part(MPI_Count{each} * rank, each); }));
}

int Gatherv(Endpoint& endpoint, const void* from, int count, MPI_Datatype type, void* to, const int* counts,
            const int* places, MPI_Datatype to_type, int root, MPI_Comm) {
  if (!is_rank(endpoint, root)) return raise(endpoint, MPI_ERR_ROOT);
  const Array all(to, endpoint.rank == root ? to_type : MPI_DATATYPE_NULL);
  return raise(endpoint, gather_parts(endpoint, {from, count, type}, from == MPI_IN_PLACE, root,
                                      [&](int rank) { return all.part(places[rank], counts[rank]); }));
}

int Scatter(Endpoint& endpoint, const void* from, int each, MPI_Datatype type, void* to, int count,
            MPI_Datatype to_type, int root, MPI_Comm) {
  if (!is_rank(endpoint, root)) return raise(endpoint, MPI_ERR_ROOT);
  const Array all(from, endpoint.rank == root ? type : MPI_DATATYPE_NULL);
  return raise(endpoint, scatter_parts(endpoint, [&](int rank) { return all.part(MPI_Count{each} * rank, each); },
                                       to == MPI_IN_PLACE, root, {to, count, to_type}));
}

int Scatterv(Endpoint& endpoint, const void* from, const int* counts, const int* places, MPI_Datatype type, void* to,
             int count, MPI_Datatype to_type, int root, MPI_Comm) {
  if (!is_rank(endpoint, root)) return raise(endpoint, MPI_ERR_ROOT);
  const Array all(from, endpoint.rank == root ? type : MPI_DATATYPE_NULL);
  return raise(endpoint, scatter_parts(endpoint, [&](int rank) { return all.part(places[rank], counts[rank]); },
                                       to == MPI_IN_PLACE, root, {to, count, to_type}));
}

int Allgather(Endpoint& endpoint, const void* from, int count, MPI_Datatype type, void* to, int each,
              MPI_Datatype to_type, MPI_Comm) {
  const Array all(to, to_type);
  const auto in = [&](int rank) { return all.part(MPI_Count{each} * rank, each); };
  if (from == MPI_IN_PLACE)
    return raise(endpoint, exchange_with_others(
                               endpoint, [&](int) { return in(endpoint.rank); }, in));
  return raise(endpoint, exchange_with_all(
                             endpoint,
                             [&](int) {
                               return Part{from, count, type};
                             },
                             in));
}

int Allgatherv(Endpoint& endpoint, const void* from, int count, MPI_Datatype type, void* to, const int* counts,
               const int* places, MPI_Datatype to_type, MPI_Comm) {
  const Array all(to, to_type);
  const auto in = [&](int rank) { return all.part(places[rank], counts[rank]); };
  if (from == MPI_IN_PLACE)
    return raise(endpoint, exchange_with_others(
                               endpoint, [&](int) { return in(endpoint.rank); }, in));
  return raise(endpoint, exchange_with_all(
                             endpoint,
                             [&](int) {
                               return Part{from, count, type};
                             },
                             in));
}

namespace {

/// What is exchanged in place is sent from a copy, for the receive may come first.
template <class In>
int exchange_in_place(Endpoint& endpoint, In in) {
  for (int peer = 0; peer < size_of(endpoint); ++peer) {
    for (int other = peer + 1; other < size_of(endpoint); ++other) {
      if (endpoint.rank != peer && endpoint.rank != other) continue;
      const int with = endpoint.rank == peer ? other : peer;
      const Part part = in(with);
      const Elements copy(part.count, part.datatype);
      if (!copy) return MPI_ERR_NO_MEM;
      int code = copy_part(endpoint, part, copy.part());
      if (code == MPI_SUCCESS) code = exchange_parts(endpoint, copy.part(), with, part, with);
      if (code != MPI_SUCCESS) return code;
    }
  }
  return MPI_SUCCESS;
}

}  // namespace

int Alltoall(Endpoint& endpoint, const void* from, int count, MPI_Datatype type, void* to, int each,
             MPI_Datatype to_type, MPI_Comm) {
  const Array target(to, to_type);
  const auto in = [&](int rank) { return target.part(MPI_Count{each} * rank, each); };
  if (from == MPI_IN_PLACE) return raise(endpoint, exchange_in_place(endpoint, in));
  const Array source(from, type);
  return raise(endpoint, exchange_with_all(
                             endpoint, [&](int rank) { return source.part(MPI_Count{count} * rank, count); }, in));
}

int Alltoallv(Endpoint& endpoint, const void* from, const int* counts, const int* places, MPI_Datatype type, void* to,
              const int* in_counts, const int* in_places, MPI_Datatype to_type, MPI_Comm) {
  const Array target(to, to_type);
  const auto in = [&](int rank) { return target.part(in_places[rank], in_counts[rank]); };
  if (from == MPI_IN_PLACE) return raise(endpoint, exchange_in_place(endpoint, in));
  const Array source(from, type);
  return raise(endpoint, exchange_with_all(
                             endpoint, [&](int rank) { return source.part(places[rank], counts[rank]); }, in));
}

int Reduce(Endpoint& endpoint, const void* operand, void* result, int count, MPI_Datatype datatype, MPI_Op operation,
           int root, MPI_Comm) {
  if (!is_rank(endpoint, root)) return raise(endpoint, MPI_ERR_ROOT);
  return raise(endpoint, reduce(endpoint, operand, result, count, datatype, operation, root));
}

int Allreduce(Endpoint& endpoint, const void* operand, void* result, int count, MPI_Datatype datatype, MPI_Op operation,
              MPI_Comm) {
  int code = reduce(endpoint, operand, result, count, datatype, operation, 0);
  if (code == MPI_SUCCESS) code = broadcast(endpoint, {result, count, datatype}, 0);
  return raise(endpoint, code);
}

int Scan(Endpoint& endpoint, const void* operand, void* result, int count, MPI_Datatype datatype, MPI_Op operation,
         MPI_Comm) {
  return raise(endpoint, scan(endpoint, operand, result, count, datatype, operation, true));
}

int Exscan(Endpoint& endpoint, const void* operand, void* result, int count, MPI_Datatype datatype, MPI_Op operation,
           MPI_Comm) {
  return raise(endpoint, scan(endpoint, operand, result, count, datatype, operation, false));
}

}  // namespace gapless::mpi::endpoints::calls
