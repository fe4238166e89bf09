// Collectives that move bytes as they are.

#include <cstring>

#include "endpoints/calls/plans.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/together/together.hpp"
#include "endpoints/together/turn.hpp"

namespace gapless::mpi::endpoints::together {
namespace {

void show(Seat& seat, const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept {
  seat.memory = memory;
  seat.count = count;
  seat.datatype = datatype;
}

Data shown(const Seat& seat) noexcept { return {seat.memory, seat.count, seat.datatype}; }

int broadcast_among_processes(const Communicator& communicator, const Data& data, int process) noexcept {
  const int root = communicator.leaders[static_cast<std::size_t>(process)];
  void* const memory = const_cast<void*>(data.memory);
  return inner.Bcast(memory, static_cast<int>(data.count), data.datatype, root, communicator.processes);
}

}  // namespace

int size_of(Endpoint& endpoint, const Data& data, MPI_Count& bytes) noexcept {
  Operation probe;
  const int code = set_buffer(probe, endpoint, data);
  bytes = probe.bytes;
  return code;
}

int barrier(Endpoint& endpoint) {
  Turns turns(endpoint);
  turns.take();
  if (!turns.is_leader()) return turns.await_release();
  turns.await_all();
  const Communicator& communicator = *endpoint.communicator;
  int code = MPI_SUCCESS;
  if (communicator.spans_processes()) {
    const InLibrary meanwhile;
    code = inner.Barrier(communicator.processes);
  }
  turns.release(code);
  return code;
}

bool serves_broadcast(const Communicator& communicator, MPI_Count bytes) noexcept {
  return communicator.seats != nullptr && bytes > 0 && bytes <= most_bytes_in_one_call;
}

/// The root, or the leader in other processes, shows its buffer; the others copy from there.
int broadcast(Endpoint& endpoint, const Data& data, int root) {
  const Communicator& communicator = *endpoint.communicator;
  Turns turns(endpoint);
  const RankPlace place = communicator.places[static_cast<std::size_t>(root)];
  const bool is_here = place.process == communicator.process;
  const int source = is_here ? place.local : 0;
  const bool is_source = source == endpoint.local;
  const bool calls_library = turns.is_leader() && communicator.spans_processes();
  int code = MPI_SUCCESS;

  show(turns.mine(), data.memory, data.count, data.datatype);
  turns.mine().failure.store(MPI_SUCCESS, std::memory_order_relaxed);
  turns.begin();
  if (is_source && is_here) turns.show();
  if (calls_library) {
    if (is_here) turns.await(source);
    const InLibrary meanwhile;
    code = broadcast_among_processes(communicator, is_here ? shown(turns.seat(source)) : data, place.process);
  }
  if (is_source && !is_here) {
    turns.mine().code = code;
    turns.show();
  } else if (!is_source) {
    turns.await(source);
    note(code, turns.seat(source).code);
    if (code == MPI_SUCCESS || is_here) note(code, copy_data(endpoint, shown(turns.seat(source)), data));
    // A buffer that is too short is its own endpoint's mistake.
    if (is_here && code != MPI_SUCCESS && code != MPI_ERR_TRUNCATE) turns.tell(source, code);
  }
  turns.take();
  if (!is_source) return code;
  turns.await_all();
  // Whose memory has failed is not known, but that of a processor does not.
  if (device::in_use() && is_gpu_memory(data.memory)) note(code, turns.mine().failure.load(std::memory_order_relaxed));
  return code;
}

bool serves_exchange(const Communicator& communicator, MPI_Count bytes) noexcept {
  if (communicator.seats == nullptr || bytes <= 0 || bytes > most_bytes_in_one_call) return false;
  return !communicator.spans_processes() ||
         bytes * communicator.size() * communicator.most_locals <= most_bytes_by_leader;
}

namespace {

Data row(const Rows& rows, int rank) noexcept {
  return plans::Array(rows.memory, rows.datatype).part(rows.each * rank, rows.each);
}

/// Packed bytes in the leader's memory: blocks of one length.
struct Blocks {
  std::byte* memory;
  MPI_Count bytes;
  Data at(std::size_t block) const noexcept {
    return {memory + static_cast<MPI_Count>(block) * bytes, bytes, MPI_BYTE};
  }
};

/// How many bytes the leader sends to, and receives from, each process, and where they begin.
template <class BlocksOf>
void set_shares(Seats& seats, const Communicator& communicator, MPI_Count bytes, BlocksOf blocks_of) noexcept {
  int place = 0;
  std::size_t process = 0;
  for (const auto& ranks : communicator.ranks) {
    if (ranks.empty()) continue;
    seats.counts[process] = static_cast<int>(blocks_of(ranks.size()) * static_cast<std::size_t>(bytes));
    seats.places[process] = place;
    place += seats.counts[process++];
  }
}

/// Every endpoint of the process copies from the others' seats.
template <class From>
int copy_from_all(Endpoint& endpoint, Turns& turns, bool in_place, const Rows& in, From from) {
  const Communicator& communicator = *endpoint.communicator;
  int code = MPI_SUCCESS;
  for (int step = in_place ? 1 : 0; step < turns.locals(); ++step) {
    const int local = (endpoint.local + step) % turns.locals();
    turns.await(local);
    note(code, copy_data(endpoint, from(turns.seat(local)), row(in, communicator.rank_of(local))));
  }
  turns.take();
  turns.await_all();
  return code;
}

/// What goes to other processes is zeros where it cannot be read: other bytes would be those of an earlier collective.
int copy_for_others(Endpoint& endpoint, const Data& from, const Data& block) noexcept {
  const int code = copy_data(endpoint, from, block);
  if (code != MPI_SUCCESS) std::memset(const_cast<void*>(block.memory), 0, static_cast<std::size_t>(block.count));
  return code;
}

/// The leader has all parts of its process in order, and gets those of all processes.
int gather_among_processes(Endpoint& endpoint, Turns& turns, const Blocks& all) {
  const Communicator& communicator = *endpoint.communicator;
  int code = MPI_SUCCESS;
  const auto first = static_cast<std::size_t>(communicator.first_block);
  for (int local = 0; local < turns.locals(); ++local)
    note(code, copy_for_others(endpoint, shown(turns.seat(local)), all.at(first + static_cast<std::size_t>(local))));
  Seats& seats = turns.seats();
  set_shares(seats, communicator, all.bytes, [](std::size_t locals) { return locals; });
  const InLibrary meanwhile;
  note(code, inner.Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.memory, seats.counts.data(), seats.places.data(),
                              MPI_BYTE, communicator.processes));
  return code;
}

}  // namespace

int gather_to_all(Endpoint& endpoint, const Data& mine, bool in_place, const Rows& all, MPI_Count bytes) {
  const Communicator& communicator = *endpoint.communicator;
  Turns turns(endpoint);
  show(turns.mine(), mine.memory, mine.count, mine.datatype);
  turns.take();
  if (!communicator.spans_processes()) return copy_from_all(endpoint, turns, in_place, all, shown);

  int code = MPI_SUCCESS;
  if (turns.is_leader()) {
    turns.await_all();
    code = gather_among_processes(endpoint, turns, {turns.seats().gathered[0].get(), bytes});
    turns.release(code);
  } else {
    code = turns.await_release();
  }
  const Blocks gathered{turns.seats().gathered[0].get(), bytes};
  std::size_t block = 0;
  for (const auto& ranks : communicator.ranks) {
    for (const int rank : ranks) {
      const Data part = gathered.at(block++);
      if (code == MPI_SUCCESS && !(in_place && rank == endpoint.rank)) code = copy_data(endpoint, part, row(all, rank));
    }
  }
  return code;
}

namespace {

/// The leader's blocks lie by process, then by the sender's local index, then by the receiver's.
int exchange_among_processes(Endpoint& endpoint, Turns& turns, const Blocks& out, const Blocks& in) {
  const Communicator& communicator = *endpoint.communicator;
  const auto locals = static_cast<std::size_t>(turns.locals());
  int code = MPI_SUCCESS;
  std::size_t block = 0;
  for (const auto& ranks : communicator.ranks) {
    for (int local = 0; local < turns.locals(); ++local) {
      const Seat& seat = turns.seat(local);
      for (const int rank : ranks)
        note(code, copy_for_others(endpoint, row({seat.memory, seat.count, seat.datatype}, rank), out.at(block++)));
    }
  }
  Seats& seats = turns.seats();
  set_shares(seats, communicator, out.bytes, [&](std::size_t others) { return locals * others; });
  const InLibrary meanwhile;
  note(code, inner.Alltoallv(out.memory, seats.counts.data(), seats.places.data(), MPI_BYTE, in.memory,
                             seats.counts.data(), seats.places.data(), MPI_BYTE, communicator.processes));
  return code;
}

}  // namespace

int all_to_all(Endpoint& endpoint, const Rows& out, const Rows& in, MPI_Count bytes) {
  const Communicator& communicator = *endpoint.communicator;
  Turns turns(endpoint);
  show(turns.mine(), out.memory, out.each, out.datatype);
  turns.take();
  if (!communicator.spans_processes()) {
    return copy_from_all(endpoint, turns, false, in, [&](const Seat& seat) {
      return row({seat.memory, seat.count, seat.datatype}, endpoint.rank);
    });
  }
  int code = MPI_SUCCESS;
  if (turns.is_leader()) {
    turns.await_all();
    const Blocks sent{turns.seats().gathered[0].get(), bytes}, received{turns.seats().gathered[1].get(), bytes};
    code = exchange_among_processes(endpoint, turns, sent, received);
    turns.release(code);
  } else {
    code = turns.await_release();
  }
  const Blocks received{turns.seats().gathered[1].get(), bytes};
  const auto locals = static_cast<std::size_t>(turns.locals());
  std::size_t block = static_cast<std::size_t>(endpoint.local);
  for (const auto& ranks : communicator.ranks) {
    for (const int rank : ranks) {
      if (code == MPI_SUCCESS) code = copy_data(endpoint, received.at(block), row(in, rank));
      block += locals;
    }
  }
  return code;
}

}  // namespace gapless::mpi::endpoints::together
