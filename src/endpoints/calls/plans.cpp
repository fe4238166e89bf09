#include "endpoints/calls/plans.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "endpoints/inner.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/runtime.hpp"

namespace gapless::mpi::endpoints::plans {
namespace {

Data token() noexcept { return {nullptr, 0, MPI_BYTE}; }

/// Has this rank anything to do in a collective with that root? The others of the root's group have not.
bool takes_part(Schedule& schedule, int root) noexcept {
  if (schedule.is_between_groups() && root == MPI_PROC_NULL) return false;
  if (!is_root(schedule, root) && !schedule.endpoint->has_peer(root)) schedule.fail(MPI_ERR_ROOT);
  return schedule.mistake() == MPI_SUCCESS;
}

/// The rank itself is among those whom it exchanges with.
bool is_itself(const Schedule& schedule, int peer) noexcept {
  return !schedule.is_between_groups() && peer == schedule.rank();
}

bool refuses_in_place(Schedule& schedule, bool in_place) noexcept {
  const bool is_refused = in_place && schedule.is_between_groups();
  if (is_refused) schedule.fail(MPI_ERR_BUFFER);
  return is_refused;
}

/// One-sided calls alone have the last two. The library would refuse these, but a rank that is alone combines nothing.
bool is_for_reductions(MPI_Op op) noexcept {
  const std::array others{MPI_Op{}, MPI_Op{MPI_OP_NULL}, MPI_Op{MPI_REPLACE}, MPI_Op{MPI_NO_OP}};
  return std::ranges::find(others, op) == others.end();
}

bool is_possible(Schedule& schedule, const Reduction& reduction) noexcept {
  const bool is_buffer = schedule.accepts({reduction.result, reduction.count, reduction.datatype});
  if (is_buffer && !is_for_reductions(reduction.op)) schedule.fail(MPI_ERR_OP);
  if (schedule.mistake() != MPI_SUCCESS) return false;
  const int code = check_operation(reduction.op, schedule.programs(reduction.datatype));
  if (code != MPI_SUCCESS) schedule.fail(code);
  return schedule.mistake() == MPI_SUCCESS;
}

/// A rank's own part, which is where it belongs. Of a rank that is alone nothing else is looked at.
void note_own(Schedule& schedule, const Data& part) noexcept { schedule.accepts(part); }

/// Where rank 0 of the group has the result; null if there is no memory.
Scratch* reduce_to_first(Schedule& schedule, const Reduction& reduction, MPI_Count count) {
  if (refuses_in_place(schedule, reduction.operand == MPI_IN_PLACE)) return nullptr;
  const void* const operand = reduction.operand == MPI_IN_PLACE ? reduction.result : reduction.operand;
  const Data mine{operand, count, reduction.datatype};
  Scratch* sum = schedule.scratch(mine.count, mine.datatype);
  Scratch* other = schedule.scratch(mine.count, mine.datatype);
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
    schedule.combine(sum->data(), other->data(), reduction.op);
    std::swap(sum, other);
  }
  schedule.fence();
  return sum;
}

/// From one rank of the group to all of the group.
void spread(Schedule& schedule, const Data& data, int root) {
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

/// The leaders of both groups give each other what their groups have.
void exchange_between_leaders(Schedule& schedule, const Data& out, const Data& in) {
  if (schedule.rank() != 0) return;
  schedule.receive_from_peer(in, 0);
  schedule.send_to_peer(out, 0);
  schedule.fence();
}

constexpr std::size_t built_in_count = 12;

/// Where the operation stands among those that the library has from the start; `built_in_count` if it does not.
std::size_t place_among_built_in(MPI_Op op) noexcept {
  const std::array<MPI_Op, built_in_count> all{MPI_SUM, MPI_MAX, MPI_MIN,  MPI_PROD, MPI_LAND,   MPI_BAND,
                                               MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
  return static_cast<std::size_t>(std::ranges::find(all, op) - all.begin());
}

/// What the library says where a process that is alone reduces nothing. MPI_Reduce_local would say the same, but has no
/// communicator to return the error of.
int ask_library(MPI_Op op, MPI_Datatype datatype) noexcept {
  static std::mutex mutex;  // collectives of one communicator
  const std::lock_guard lock(mutex);
  const int nothing = 0;
  int result = 0;
  return native.Allreduce(&nothing, &result, 0, datatype, op, runtime::own_communicator());
}

}  // namespace

bool is_built_in(MPI_Op op) noexcept { return place_among_built_in(op) != built_in_count; }

int check_operation(MPI_Op op, MPI_Datatype datatype) noexcept {
  // By operation, the last datatype that it was defined for: one that the library has from the start, too.
  static thread_local std::array<MPI_Datatype, built_in_count> last{};
  const std::size_t place = place_among_built_in(op);
  if (place == built_in_count || last[place] == datatype) return MPI_SUCCESS;
  const int code = ask_library(op, datatype);
  if (code == MPI_SUCCESS) last[place] = datatype;
  return code;
}

bool is_root(const Schedule& schedule, int root) noexcept {
  return schedule.is_between_groups() ? root == MPI_ROOT : root == schedule.rank();
}

bool has_part(const Schedule& schedule, int root) noexcept { return !schedule.is_between_groups() || root >= 0; }

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
  if (!schedule.is_between_groups()) return;
  exchange_between_leaders(schedule, token(), token());
  spread(schedule, token(), 0);
}

void broadcast(Schedule& schedule, const Data& data, int root) {
  if (!takes_part(schedule, root) || !schedule.accepts(data)) return;
  if (!schedule.is_between_groups()) return spread(schedule, data, root);
  if (is_root(schedule, root)) return schedule.send_to_peer(data, 0);
  if (schedule.rank() == 0) schedule.receive_from_peer(data, root);
  schedule.fence();
  spread(schedule, data, 0);
}

void gather(Schedule& schedule, const Data& mine, bool in_place, int root, const DataOf& in) {
  if (!takes_part(schedule, root)) return;
  if (!is_root(schedule, root)) return in_place ? schedule.fail(MPI_ERR_BUFFER) : schedule.send_to_peer(mine, root);
  for (int rank = 0; rank < schedule.peers(); ++rank) {
    if (!is_itself(schedule, rank)) schedule.receive_from_peer(in(rank), rank);
  }
  if (is_itself(schedule, root)) in_place ? note_own(schedule, in(root)) : schedule.copy(mine, in(root));
}

void scatter(Schedule& schedule, const DataOf& out, bool in_place, int root, const Data& mine) {
  if (!takes_part(schedule, root)) return;
  if (!is_root(schedule, root))
    return in_place ? schedule.fail(MPI_ERR_BUFFER) : schedule.receive_from_peer(mine, root);
  for (int rank = 0; rank < schedule.peers(); ++rank) {
    if (!is_itself(schedule, rank)) schedule.send_to_peer(out(rank), rank);
  }
  if (is_itself(schedule, root)) in_place ? note_own(schedule, out(root)) : schedule.copy(out(root), mine);
}

void exchange(Schedule& schedule, const DataOf& out, const DataOf& in, bool in_place) {
  if (refuses_in_place(schedule, in_place)) return;
  const int peers = schedule.peers(), rank = schedule.rank();
  const int first = schedule.is_between_groups() ? 0 : 1;
  for (int step = first; step < peers; ++step) {
    const int peer = (rank + peers - step) % peers;
    schedule.receive_from_peer(in(peer), peer);
  }
  for (int step = first; step < peers; ++step) {
    const int peer = (rank + step) % peers;
    schedule.send_to_peer(out(peer), peer);
  }
  if (is_itself(schedule, rank)) in_place ? note_own(schedule, in(rank)) : schedule.copy(out(rank), in(rank));
}

void exchange_in_place(Schedule& schedule, const DataOf& in) {
  if (refuses_in_place(schedule, true)) return;
  std::vector<Data> copies;
  for (int peer = 0; peer < schedule.size(); ++peer) {
    const Data data = in(peer);
    if (!schedule.accepts(data)) return;
    const Scratch* copy = schedule.scratch(data.count, data.datatype);
    if (schedule.mistake() != MPI_SUCCESS) return;
    schedule.copy(data, copy->data());
    copies.push_back(copy->data());
  }
  exchange(
      schedule, [&](int peer) { return copies[static_cast<std::size_t>(peer)]; }, in, true);
}

void reduce(Schedule& schedule, const Reduction& reduction, int root) {
  if (!takes_part(schedule, root) || !is_possible(schedule, reduction)) return;
  const Data at_root{reduction.result, reduction.count, reduction.datatype};
  const bool gets_result = is_root(schedule, root);
  if (gets_result && schedule.is_between_groups()) return schedule.receive_from_peer(at_root, 0);
  const Scratch* sum = reduce_to_first(schedule, reduction, reduction.count);
  if (sum == nullptr) return;
  if (schedule.rank() == 0 && gets_result) {
    schedule.copy(sum->data(), at_root);
  } else if (schedule.rank() == 0) {
    schedule.send_to_peer(sum->data(), root);
  } else if (gets_result) {
    schedule.receive_from_peer(at_root, 0);
  }
}

void reduce_to_all(Schedule& schedule, const Reduction& reduction) {
  if (!is_possible(schedule, reduction)) return;
  const Data result{reduction.result, reduction.count, reduction.datatype};
  const Scratch* sum = reduce_to_first(schedule, reduction, reduction.count);
  if (sum == nullptr) return;
  if (schedule.is_between_groups()) {
    exchange_between_leaders(schedule, sum->data(), result);
  } else if (schedule.rank() == 0) {
    schedule.copy(sum->data(), result);
  }
  spread(schedule, result, 0);
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
  const Scratch* sum = reduce_to_first(schedule, reduction, all);
  if (sum == nullptr) return;
  if (schedule.is_between_groups()) {
    const Scratch* of_others = schedule.scratch(all, reduction.datatype);
    if (schedule.mistake() != MPI_SUCCESS) return;
    exchange_between_leaders(schedule, sum->data(), of_others->data());
    sum = of_others;
  }
  const Array sums(sum->data().memory, reduction.datatype);
  const Data mine{reduction.result, counts(schedule.rank()), reduction.datatype};
  if (schedule.rank() != 0) return schedule.receive(mine, 0);
  for (int rank = 1; rank < schedule.size(); ++rank)
    schedule.send(sums.part(firsts[static_cast<std::size_t>(rank)], counts(rank)), rank);
  schedule.copy(sums.part(0, counts(0)), mine);
}

void scan(Schedule& schedule, const Reduction& reduction, bool inclusive) {
  if (!is_possible(schedule, reduction)) return;
  const Scratch* before = schedule.scratch(reduction.count, reduction.datatype);
  const Scratch* sum = schedule.scratch(reduction.count, reduction.datatype);
  if (schedule.mistake() != MPI_SUCCESS) return;
  const void* const operand = reduction.operand == MPI_IN_PLACE ? reduction.result : reduction.operand;
  const Data out{reduction.result, reduction.count, reduction.datatype};
  schedule.copy({operand, reduction.count, reduction.datatype}, sum->data());
  if (schedule.rank() > 0) {
    schedule.receive(before->data(), schedule.rank() - 1);
    schedule.fence();
    schedule.combine(before->data(), sum->data(), reduction.op);
  }
  if (schedule.rank() + 1 < schedule.size()) schedule.send(sum->data(), schedule.rank() + 1);
  if (inclusive) return schedule.copy(sum->data(), out);
  if (schedule.rank() > 0) schedule.copy(before->data(), out);
}

}  // namespace gapless::mpi::endpoints::plans
