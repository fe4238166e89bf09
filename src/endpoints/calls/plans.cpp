#include "endpoints/calls/plans.hpp"

#include <algorithm>
#include <utility>

#include "endpoints/inner.hpp"
#include "mpi/calls/user_buffer.hpp"

namespace gapless::mpi::endpoints::plans {
namespace {

Data token() noexcept { return {nullptr, 0, MPI_BYTE}; }

bool is_root(Schedule& schedule, int root) noexcept {
  const bool is_rank = root >= 0 && root < schedule.size();
  if (!is_rank) schedule.fail(MPI_ERR_ROOT);
  return is_rank;
}

bool is_null(MPI_Op operation) noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  return operation == nullptr;  // its MPI_OP_NULL is an object, which MPI_Reduce_local refuses
#else
  return operation == MPI_OP_NULL;
#endif
}

bool is_possible(Schedule& schedule, const Reduction& reduction) noexcept {
  if (reduction.count < 0) schedule.fail(MPI_ERR_COUNT);
  if (reduction.datatype == MPI_DATATYPE_NULL) schedule.fail(MPI_ERR_TYPE);
  if (is_null(reduction.operation)) schedule.fail(MPI_ERR_OP);
  return schedule.mistake() == MPI_SUCCESS;
}

/// Where rank 0 has the result; null if there is no memory.
Elements* reduce_to_first(Schedule& schedule, const Data& mine, MPI_Op operation) {
  Elements* sum = schedule.elements(mine.count, mine.datatype);
  Elements* other = schedule.elements(mine.count, mine.datatype);
  if (schedule.mistake() != MPI_SUCCESS) return nullptr;
  schedule.copy(mine, sum->data());
  for (int mask = 1; mask < schedule.size(); mask <<= 1) {
    if ((schedule.rank() & mask) != 0) {
      schedule.send(sum->data(), schedule.rank() - mask);
      break;
    }
    if (schedule.rank() + mask >= schedule.size()) continue;
    schedule.receive(other->data(), schedule.rank() + mask);
    schedule.fence();
    schedule.combine(sum->data(), other->data(), operation);
    std::swap(sum, other);
  }
  schedule.fence();
  return sum;
}

}  // namespace

Array::Array(const void* start, MPI_Datatype type) noexcept : memory(start), datatype(type) {
  MPI_Count lower_bound = 0;
  if (type != MPI_DATATYPE_NULL) native.Type_get_extent_x(type, &lower_bound, &extent);
}

Data Array::part(MPI_Count first, MPI_Count count) const noexcept {
  return {address_of(memory, static_cast<std::intptr_t>(first * extent)), count, datatype};
}

void barrier(Schedule& schedule) {
  const int size = schedule.size();
  for (int step = 1; step < size; step <<= 1) {
    schedule.receive(token(), (schedule.rank() - step + size) % size);
    schedule.send(token(), (schedule.rank() + step) % size);
    schedule.fence();
  }
}

void broadcast(Schedule& schedule, const Data& data, int root) {
  if (!is_root(schedule, root)) return;
  const int size = schedule.size();
  const int mine = (schedule.rank() - root + size) % size;
  int mask = 1;
  while (mask < size && (mine & mask) == 0) mask <<= 1;
  if (mask < size) {
    schedule.receive(data, (mine - mask + root) % size);
    schedule.fence();
  }
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (mine + mask < size) schedule.send(data, (mine + mask + root) % size);
  }
}

void gather(Schedule& schedule, const Data& mine, bool in_place, int root, const DataOf& in) {
  if (!is_root(schedule, root)) return;
  if (schedule.rank() != root) return schedule.send(mine, root);
  for (int rank = 0; rank < schedule.size(); ++rank) {
    if (rank != root) schedule.receive(in(rank), rank);
  }
  if (!in_place) schedule.copy(mine, in(root));
}

void scatter(Schedule& schedule, const DataOf& out, bool in_place, int root, const Data& mine) {
  if (!is_root(schedule, root)) return;
  if (schedule.rank() != root) return schedule.receive(mine, root);
  for (int rank = 0; rank < schedule.size(); ++rank) {
    if (rank != root) schedule.send(out(rank), rank);
  }
  if (!in_place) schedule.copy(out(root), mine);
}

void exchange(Schedule& schedule, const DataOf& out, const DataOf& in, bool in_place) {
  const int size = schedule.size(), rank = schedule.rank();
  for (int step = 1; step < size; ++step)
    schedule.receive(in((rank - step + size) % size), (rank - step + size) % size);
  for (int step = 1; step < size; ++step) schedule.send(out((rank + step) % size), (rank + step) % size);
  if (!in_place) schedule.copy(out(rank), in(rank));
}

void exchange_in_place(Schedule& schedule, const DataOf& in) {
  std::vector<Data> copies;
  for (int peer = 0; peer < schedule.size(); ++peer) {
    const Data data = in(peer);
    if (data.count < 0 || data.datatype == MPI_DATATYPE_NULL)
      return schedule.fail(data.count < 0 ? MPI_ERR_COUNT : MPI_ERR_TYPE);
    const Elements* copy = schedule.elements(data.count, data.datatype);
    if (schedule.mistake() != MPI_SUCCESS) return;
    schedule.copy(data, copy->data());
    copies.push_back(copy->data());
  }
  exchange(
      schedule, [&](int peer) { return copies[static_cast<std::size_t>(peer)]; }, in, true);
}

void reduce(Schedule& schedule, const Reduction& reduction, int root) {
  if (!is_root(schedule, root) || !is_possible(schedule, reduction)) return;
  const void* const operand = reduction.operand == MPI_IN_PLACE ? reduction.result : reduction.operand;
  const Data at_root{reduction.result, reduction.count, reduction.datatype};
  const Elements* sum = reduce_to_first(schedule, {operand, reduction.count, reduction.datatype}, reduction.operation);
  if (sum == nullptr) return;
  if (schedule.rank() == 0 && root == 0) {
    schedule.copy(sum->data(), at_root);
  } else if (schedule.rank() == 0) {
    schedule.send(sum->data(), root);
  } else if (schedule.rank() == root) {
    schedule.receive(at_root, 0);
  }
}

void reduce_to_all(Schedule& schedule, const Reduction& reduction) {
  reduce(schedule, reduction, 0);
  schedule.fence();
  broadcast(schedule, {reduction.result, reduction.count, reduction.datatype}, 0);
}

void reduce_and_scatter(Schedule& schedule, const Reduction& reduction, const std::function<MPI_Count(int)>& counts) {
  std::vector<MPI_Count> firsts;
  MPI_Count all = 0;
  for (int rank = 0; rank < schedule.size(); ++rank) {
    if (counts(rank) < 0) schedule.fail(MPI_ERR_COUNT);
    firsts.push_back(all);
    all += counts(rank);
  }
  if (!is_possible(schedule, reduction)) return;
  const void* const operand = reduction.operand == MPI_IN_PLACE ? reduction.result : reduction.operand;
  const Elements* sum = reduce_to_first(schedule, {operand, all, reduction.datatype}, reduction.operation);
  if (sum == nullptr) return;
  const Array sums(sum->data().memory, reduction.datatype);
  scatter(schedule, [&](int rank) { return sums.part(firsts[static_cast<std::size_t>(rank)], counts(rank)); }, false, 0,
          {reduction.result, counts(schedule.rank()), reduction.datatype});
}

void scan(Schedule& schedule, const Reduction& reduction, bool inclusive) {
  if (!is_possible(schedule, reduction)) return;
  const Elements* before = schedule.elements(reduction.count, reduction.datatype);
  const Elements* sum = schedule.elements(reduction.count, reduction.datatype);
  if (schedule.mistake() != MPI_SUCCESS) return;
  const void* const operand = reduction.operand == MPI_IN_PLACE ? reduction.result : reduction.operand;
  const Data out{reduction.result, reduction.count, reduction.datatype};
  schedule.copy({operand, reduction.count, reduction.datatype}, sum->data());
  if (schedule.rank() > 0) {
    schedule.receive(before->data(), schedule.rank() - 1);
    schedule.fence();
    schedule.combine(before->data(), sum->data(), reduction.operation);
  }
  if (schedule.rank() + 1 < schedule.size()) schedule.send(sum->data(), schedule.rank() + 1);
  if (inclusive) return schedule.copy(sum->data(), out);
  if (schedule.rank() > 0) schedule.copy(before->data(), out);
}

}  // namespace gapless::mpi::endpoints::plans
