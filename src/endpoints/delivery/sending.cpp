// Sends: by the ring to an endpoint that shares memory, and on the lane of one that does not.
#include <limits>
#include <new>

#include "endpoints/delivery/bytes.hpp"
#include "endpoints/delivery/operation.hpp"
#include "endpoints/inner.hpp"
#include "fabric/attached_memory.hpp"
#include "mpi/calls/staged/byte_types.hpp"

namespace gapless::mpi::endpoints {
namespace {

/// The library has most short messages away at once, and then nobody has to ask it again. Precondition: the operation
/// is the last that became active.
void look_whether_moved(Operation& operation) noexcept {
  int flag = 0;
  const int code = inner.Test(&operation.moving, &flag, MPI_STATUS_IGNORE);
  if (flag == 0 && code == MPI_SUCCESS) return;
  operation.endpoint->active.pop_back();
  finish_moving(operation, code);
}

[[gnu::noinline]] RingWriter* open_ring(Endpoint& from, RingWriter& ring, int inbox) noexcept {
  Inboxes& inboxes = from.communicator->inboxes;
  if (!ring.is_refused && inboxes.begin_ring(from.inbox_number(), inbox)) {
    ring.open(inboxes.ring(from.inbox_number(), inbox), inboxes.head(inbox).is_closed);
    return &ring;
  }
  ring.is_refused = true;
  return nullptr;
}

/// The ring to an endpoint that shares memory; null if there is no memory for one.
inline RingWriter* ring_to(Endpoint& from, int inbox) noexcept {
  RingWriter& ring = from.outgoing[static_cast<std::size_t>(inbox)];
  return ring.is_open() ? &ring : open_ring(from, ring, inbox);
}

/// What another process takes.
const std::byte* lent_bytes(const Operation& send) noexcept {
  return send.packed != nullptr ? send.packed.get() : send.run;
}

void describe(Cell& cell, Operation& send) noexcept {
  cell.tag = send.envelope.tag;
  cell.context = send.envelope.context;
  cell.way = send.way;
  if (send.way == Way::copied) {
    cell.number = static_cast<std::uint16_t>(send.bytes);
  } else if (send.way == Way::lent) {
    cell.lent = {&send, send.bytes};
  } else if (send.way == Way::attached) {
    cell.number = static_cast<std::uint16_t>(send.loan);
    cell.attached = {lent_bytes(send), send.bytes};
  } else if (send.way == Way::in_outbox) {
    cell.number = static_cast<std::uint16_t>(send.unit);
    cell.in_outbox = send.bytes;
  }
}

/// Is a send complete once its cell is written? Lent and attached ones are when the receiver has taken their bytes.
bool is_complete_in_ring(Way way) noexcept { return way != Way::lent && way != Way::attached; }

void count(transfer::EndpointMessages& sent, Way way) noexcept {
  switch (way) {
    case Way::copied:
      ++sent.copied;
      break;
    case Way::lent:
      ++sent.lent;
      break;
    case Way::attached:
      ++sent.attached;
      break;
    case Way::in_outbox:
      ++sent.in_outbox;
      break;
    case Way::by_library:  // counted on the lane
    case Way::failed:
      break;
  }
}

/// The operation's message enters its ring; false if there is no room. One that nobody will ever receive fails.
bool write(Operation& send) noexcept {
  if (send.ring->is_closed()) {
    send.code = MPI_ERR_COMM;
    if (send.way == Way::in_outbox) send.endpoint->outbox.withdraw(send.unit);
    complete(send);
    return true;
  }
  const RingWriter::Room room = send.ring->claim(send.way == Way::copied ? send.bytes : 0);
  if (room.cell == nullptr) return false;
  if (send.way == Way::attached) send.endpoint->lending.append(send);
  describe(*room.cell, send);
  count(send.endpoint->sent, send.way);
  const bool is_over = is_complete_in_ring(send.way);
  if (send.way == Way::copied) {
    send.code = pack_all(send, room.memory);
    if (send.code != MPI_SUCCESS) room.cell->way = Way::failed;
  }
  send.ring->publish(*room.cell);
  if (is_over) complete(send);
  return true;
}

/// Precondition: the endpoint is locked.
void write_or_wait(Operation& send) {
  if (send.ring->stalled == 0 && write(send)) return;
  send.endpoint->stalled.push_back(&send);
  ++send.ring->stalled;
}

/// An operation of its own of the same message; null if there is no memory.
template <class Kind>
std::unique_ptr<Kind> make_other(const Operation& send) {
  std::unique_ptr<Kind> other(new (std::nothrow) Kind);
  if (other == nullptr) return other;
  other->endpoint = send.endpoint;
  other->bytes = send.bytes;
  other->envelope = send.envelope;
  other->ring = send.ring;
  other->way = send.way;
  other->loan = send.loan;
  other->outlives_call = true;
  return other;
}

/// The library's call of that mode.
int isend(const Data& data, int process, int tag, MPI_Comm lane, Mode mode, MPI_Request* request) {
  if (data.count > std::numeric_limits<int>::max()) {
#if GAPLESS_DECLARED_Isend_c
    const auto large = mode == Mode::synchronous ? inner.Issend_c : inner.Isend_c;
    if (large != nullptr) return large(data.memory, data.count, data.datatype, process, tag, lane, request);
#endif
    if (data.datatype != MPI_BYTE) return MPI_ERR_COUNT;
    const ByteType type(data.count);
    return type ? isend({data.memory, 1, type.handle()}, process, tag, lane, mode, request) : MPI_ERR_NO_MEM;
  }
  const auto start = mode == Mode::synchronous ? inner.Issend : inner.Isend;
  return start(data.memory, static_cast<int>(data.count), data.datatype, process, tag, lane, request);
}

/// False, with the send's code set, if the library does not even begin.
bool move_on_lane(Operation& send, const Data& data, const RankPlace& place, Mode mode, bool is_marked) {
  const Communicator& communicator = *send.endpoint->communicator;
  const int tag = communicator.format.encode(send.envelope.tag, send.envelope.context, is_marked, send.endpoint->local);
  const MPI_Comm lane = communicator.lanes[static_cast<std::size_t>(place.local)];
  ++send.endpoint->sent.by_library;
  const auto start = [&](MPI_Request* request) { return isend(data, place.process, tag, lane, mode, request); };
  return start_moving(send, start);
}

/// Nobody but the lane tells the receiver that no bytes come. Messages of the program have no mark for that: their
/// receivers wait, as those of processes do.
void fail_on_lane(Operation& send, const RankPlace& place) {
  const Data nothing{nullptr, 0, MPI_BYTE};
  const bool has_mark = send.envelope.context == Context::collective;
  if (!has_mark || !move_on_lane(send, nothing, place, Mode::standard, true)) complete(send);
}

/// To an endpoint that has no ring from this one. False if the send has ended, or will end, in an error.
bool send_on_lane(Operation& send, const Data& data, const RankPlace& place, Mode mode) {
  if (move_on_lane(send, data, place, mode, mode == Mode::synchronous)) return true;
  fail_on_lane(send, place);
  return false;
}

/// The library moves the bytes, and the ring says so, lest later messages overtake this one; or the library does not
/// begin, and the ring says that no bytes come.
void send_by_library(Operation& send, const Data& data, const RankPlace& place, Mode mode) {
  Cell* const cell = send.ring->stalled == 0 ? send.ring->claim(0).cell : nullptr;
  auto notice = cell == nullptr ? make_other<Operation>(send) : nullptr;
  if (cell == nullptr && notice == nullptr) {
    send.code = MPI_ERR_NO_MEM;
    return complete(send);
  }
  const bool moves = move_on_lane(send, data, place, mode, mode == Mode::synchronous);
  const Way way = moves ? Way::by_library : Way::failed;
  if (cell != nullptr) {
    send.way = way;
    describe(*cell, send);
    send.ring->publish(*cell);
  } else {
    notice->way = way;
    notice->is_abandoned = true;
    begin(*notice);
    write_or_wait(*notice.release());
  }
  if (!moves) complete(send);
}

/// Other processes can read ordinary memory alone.
bool can_be_attached(const Operation& send) noexcept {
  return is_one_run(send) && (!device::in_use() || send.buffer.buffer.location.kind == device::MemoryKind::host);
}

/// Has the receiver's process take the bytes from here. False where that cannot be: there is no memory for packed
/// bytes, or as many sends wait as the ring has loans, and short messages behind this one are not to wait with them.
bool lend_to_process(Operation& send) noexcept {
  const int loan = send.ring->claim_loan();
  if (loan < 0) return false;
  if (!can_be_attached(send)) {
    send.packed = packed_copy(send);
    if (send.packed == nullptr) {
      send.ring->end_loan(loan);
      return false;
    }
  }
  send.loan = loan;
  return true;
}

/// The endpoint's outbox; null if there is no memory for one.
Outbox* outbox_of(Endpoint& endpoint) noexcept {
  Outbox& outbox = endpoint.outbox;
  if (!outbox.is_open() && !outbox.is_refused) {
    Inboxes& inboxes = endpoint.communicator->inboxes;
    outbox.is_refused = !inboxes.begin_outbox(endpoint.inbox_number());
    if (!outbox.is_refused) outbox.open(inboxes.outbox(endpoint.inbox_number()));
  }
  return outbox.is_open() ? &outbox : nullptr;
}

/// Packs the message into the outbox. False where another way is sooner, or has to be taken.
bool leave_in_outbox(Operation& send) noexcept {
  Endpoint& endpoint = *send.endpoint;
  if (send.bytes > Outbox::most_bytes || !endpoint.long_ways.goes_to_outbox(send.bytes)) return false;
  Outbox* const outbox = outbox_of(endpoint);
  if (outbox == nullptr) return false;
  const auto note = [&](MPI_Count bytes, std::uint32_t ns) { endpoint.long_ways.note_in_outbox(bytes, ns); };
  send.unit = outbox->claim(send.bytes, note);
  if (send.unit < 0) return false;
  const Stopwatch watch;
  if (pack_all(send, outbox->at(send.unit)) != MPI_SUCCESS) {
    outbox->withdraw(send.unit);
    return false;
  }
  outbox->note_copied(send.unit, watch.ns());
  return true;
}

/// How a message of this operation goes through its ring. May pack it.
Way way_of(Operation& send, const RankPlace& place, Mode mode) noexcept {
  const Communicator& communicator = *send.endpoint->communicator;
  if (send.bytes <= most_copied_aside && mode != Mode::synchronous) return Way::copied;
  if (place.process == communicator.process) return Way::lent;
  if (mode != Mode::synchronous && leave_in_outbox(send)) return Way::in_outbox;
  return !communicator.attached.empty() && lend_to_process(send) ? Way::attached : Way::by_library;
}

/// Precondition: the operation's ring is there.
void send_here(Operation& send, const Data& data, const RankPlace& place, Mode mode) {
  send.way = way_of(send, place, mode);
  if (send.way == Way::by_library) {
    send_by_library(send, data, place, mode);
  } else {
    write_or_wait(send);
  }
}

/// The copy that a buffered send leaves behind.
struct BufferedCopy : Operation {
  ~BufferedCopy() override { under_way->fetch_sub(1, std::memory_order_release); }
  std::shared_ptr<std::atomic<int>> under_way;  ///< of the endpoint, which may have ended
};

std::unique_ptr<BufferedCopy> make_buffered_copy(const Operation& send) noexcept {
  auto packed = packed_copy(send);
  auto copy = packed == nullptr ? nullptr : make_other<BufferedCopy>(send);
  if (copy == nullptr) return copy;
  copy->under_way = send.endpoint->buffered;
  copy->under_way->fetch_add(1, std::memory_order_relaxed);
  copy->packed = std::move(packed);
  copy->run = copy->packed.get();
  return copy;
}

/// A buffered send is another one's, which has a copy of the bytes, unless the ring has room for them.
void send_buffered(Operation& send, const RankPlace& place) {
  if (send.ring != nullptr && send.bytes <= most_copied_aside && send.ring->stalled == 0 && write(send)) return;
  auto copy = make_buffered_copy(send);
  if (copy == nullptr) {
    send.code = MPI_ERR_NO_MEM;
    return complete(send);
  }
  const Data bytes{copy->run, copy->bytes, MPI_BYTE};
  begin(*copy);
  if (copy->ring != nullptr) copy->way = way_of(*copy, place, Mode::standard);
  if (copy->ring != nullptr && copy->way != Way::by_library) {
    copy->is_abandoned = true;  // before others see it
    write_or_wait(*copy.release());
    return complete(send);
  }
  if (copy->ring != nullptr) {
    send_by_library(*copy, bytes, place, Mode::standard);
  } else {
    send_on_lane(*copy, bytes, place, Mode::standard);
  }
  if (copy->is_done()) {
    send.code = copy->code;
  } else {
    copy.release()->is_abandoned = true;
  }
  complete(send);
}

}  // namespace

bool send_at_once(Endpoint& from, const Data& data, int destination, int tag, Context context) noexcept {
  const Communicator& communicator = *from.communicator;
  const int inbox = communicator.places[static_cast<std::size_t>(destination)].inbox;
  if (inbox < 0) return false;
  std::byte* run = nullptr;
  MPI_Count bytes = 0;
  if (!is_plain(data, run, bytes) || bytes > most_copied_aside) return false;
  const std::lock_guard lock(from.lock);
  RingWriter* const ring = ring_to(from, inbox);
  if (ring == nullptr || ring->stalled != 0 || ring->is_closed()) return false;
  const RingWriter::Room room = ring->claim(bytes);
  if (room.cell == nullptr) return false;
  room.cell->tag = tag;
  room.cell->context = context;
  room.cell->way = Way::copied;
  ++from.sent.copied;
  room.cell->number = static_cast<std::uint16_t>(bytes);
  copy_bytes(room.memory, run, static_cast<std::size_t>(bytes));
  ring->publish(*room.cell);
  return true;
}

namespace {

/// What every send begins with. False if it has ended in an error. Precondition: the endpoint is locked.
bool find_way(Operation& send, const RankPlace& place, int tag, Context context) noexcept {
  Endpoint& from = *send.endpoint;
  begin(send);
  send.receives = false;
  send.envelope = {from.rank, tag, context};
  if (send.outlives_call) from.keep();
  send.ring = place.inbox < 0 ? nullptr : ring_to(from, place.inbox);
  if (send.ring != nullptr || place.process != from.communicator->process) return true;
  send.code = MPI_ERR_NO_MEM;
  complete(send);
  return false;
}

}  // namespace

void start_failed_send(Operation& operation, int destination, int tag, Context context) {
  Endpoint& from = *operation.endpoint;
  const RankPlace& place = from.communicator->places[static_cast<std::size_t>(destination)];
  const std::lock_guard lock(from.lock);
  if (!find_way(operation, place, tag, context)) return;
  operation.way = Way::failed;
  if (operation.ring != nullptr) {
    write_or_wait(operation);
  } else {
    fail_on_lane(operation, place);
  }
}

void start_send(Operation& operation, const Data& data, int destination, int tag, Context context, Mode mode) {
  Endpoint& from = *operation.endpoint;
  const RankPlace& place = from.communicator->places[static_cast<std::size_t>(destination)];
  const std::lock_guard lock(from.lock);
  if (!find_way(operation, place, tag, context)) return;
  if (mode == Mode::buffered) return send_buffered(operation, place);
  if (operation.ring != nullptr) return send_here(operation, data, place, mode);
  if (!send_on_lane(operation, data, place, mode)) return;
  if (operation.bytes <= most_copied_aside && mode != Mode::synchronous) look_whether_moved(operation);
}

void send_stalled(Endpoint& endpoint) noexcept {
  if (endpoint.stalled.empty()) return;
  for (const Operation* send : endpoint.stalled) send->ring->is_full = false;
  // What does not fit holds up what comes behind it on the same ring.
  std::erase_if(endpoint.stalled, [](Operation* send) {
    RingWriter& ring = *send->ring;
    ring.is_full = ring.is_full || !write(*send);
    if (!ring.is_full) --ring.stalled;
    return !ring.is_full;
  });
}

namespace {

/// Copies a piece of what the reader has offered, if any is left.
void give_piece(const Operation& send, Loan& loan) noexcept {
  Endpoint& endpoint = *send.endpoint;
  const Loan::Piece piece = endpoint.gives_pieces ? loan.next_to_give() : Loan::Piece{};
  if (piece.bytes == 0) return;
  endpoint.gives_pieces = fabric::write_attached(loan.borrower, lent_bytes(send) + piece.begin, loan.to + piece.begin,
                                                 static_cast<std::size_t>(piece.bytes));
  loan.end_piece(endpoint.gives_pieces);
}

}  // namespace

void look_at_loans(Endpoint& endpoint) noexcept {
  for (Link* next = endpoint.lending.next; next != &endpoint.lending;) {
    auto& send = static_cast<Operation&>(static_cast<Posted&>(*next));
    next = next->next;
    const bool is_closed = send.ring->is_closed();
    Loan& loan = send.ring->loan(send.loan);
    const Loan::State state = loan.state.load(std::memory_order_acquire);
    if (state == Loan::State::pending && !is_closed) {
      give_piece(send, loan);
      continue;
    }
    endpoint.sent.by_both += loan.has_given() ? 1 : 0;
    if (state == Loan::State::taken && send.bytes <= Outbox::most_bytes)
      endpoint.long_ways.note_attached(send.bytes, loan.took_ns);
    send.ring->end_loan(send.loan);
    send.remove();
    if (state != Loan::State::taken) send.code = is_closed ? MPI_ERR_COMM : MPI_ERR_OTHER;
    complete(send);
  }
}

}  // namespace gapless::mpi::endpoints
