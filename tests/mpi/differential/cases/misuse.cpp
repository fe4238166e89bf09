// Calls with one wrong argument, and calls with MPI_PROC_NULL. No other process takes part.
#include "cases/calls.hpp"
#include "sides/sides.hpp"
#include "support/environment.hpp"

namespace gapless::test::differential {
namespace {

struct Arguments {
  void* address;
  int count;
  MPI_Datatype type;
  int peer = MPI_PROC_NULL;
  int tag;
  MPI_Comm comm;
  MPI_Message message = MPI_MESSAGE_NO_PROC;
  void* packed = nullptr;
  int packed_size = 0;
  int position = 0;
};

MPI_Datatype make_uncommitted() {
  MPI_Datatype type;
  MPI_Type_vector(4, 2, 3, MPI_INT, &type);
  return type;
}

void make_mistake(Mistake mistake, const Case& plan, const Context& context, MPI_Datatype uncommitted, bool alone,
                  Arguments& arguments) {
  // The rest of the call is right: a message to itself.
  if (mistake != Mistake::none && !alone && !plan.inter) arguments.peer = context.rank();
  switch (mistake) {
    case Mistake::rank_too_large:
      arguments.peer = context.ranks() + 3;
      break;
    case Mistake::rank_negative:
      arguments.peer = -77;
      break;
    case Mistake::tag_negative:
      arguments.tag = -77;
      break;
    case Mistake::count_negative:
      arguments.count = -1;
      break;
    case Mistake::type_null:
      arguments.type = MPI_DATATYPE_NULL;
      break;
    case Mistake::type_uncommitted:
      arguments.type = uncommitted;
      break;
    case Mistake::communicator_null:
      arguments.comm = MPI_COMM_NULL;
      break;
    case Mistake::communicator_unset:
      arguments.comm = MPI_Comm{};
      break;
    case Mistake::null_message:
      arguments.message = MPI_MESSAGE_NULL;
      break;
    case Mistake::null_buffer:
      arguments.address = nullptr;
      break;
    case Mistake::packed_too_small:
      arguments.packed_size -= 1 + plan.shuffle % std::max(arguments.packed_size, 1);
      break;
    case Mistake::position_beyond:
      arguments.position = arguments.packed_size + 1 + plan.shuffle % 50;
      break;
    case Mistake::none:
      break;
  }
}

/// `at_send`: of a Sendrecv, which half the arguments are for. The other one has nothing to do.
int call_sendrecv(const Arguments& a, [[maybe_unused]] bool large, bool at_send, MPI_Status* status) {
  char nothing[8];
  if (at_send)
    return GAPLESS_CALL_EITHER(large, Sendrecv, a.address, a.count, a.type, a.peer, a.tag, nothing, 0, MPI_BYTE,
                               MPI_PROC_NULL, 0, a.comm, status);
  return GAPLESS_CALL_EITHER(large, Sendrecv, nothing, 0, MPI_BYTE, MPI_PROC_NULL, 0, a.address, a.count, a.type,
                             a.peer, a.tag, a.comm, status);
}

int call_replace(const Arguments& a, [[maybe_unused]] bool large, bool at_send, MPI_Status* status) {
  const int to = at_send ? a.peer : MPI_PROC_NULL;
  const int from = at_send ? MPI_PROC_NULL : a.peer;
  return GAPLESS_CALL_EITHER(large, Sendrecv_replace, a.address, a.count, a.type, to, a.tag, from, a.tag, a.comm,
                             status);
}

int call_pack(Arguments& a, bool packs) {
  return packs ? MPI_Pack(a.address, a.count, a.type, a.packed, a.packed_size, &a.position, a.comm)
               : MPI_Unpack(a.packed, a.packed_size, &a.position, a.address, a.count, a.type, a.comm);
}

int make(Call call, Arguments& a, [[maybe_unused]] bool large, bool at_send, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  switch (call) {
    case Call::send:
      return GAPLESS_CALL_EITHER(large, Send, a.address, a.count, a.type, a.peer, a.tag, a.comm);
    case Call::ssend:
      return GAPLESS_CALL_EITHER(large, Ssend, a.address, a.count, a.type, a.peer, a.tag, a.comm);
    case Call::bsend:
      return GAPLESS_CALL_EITHER(large, Bsend, a.address, a.count, a.type, a.peer, a.tag, a.comm);
    case Call::rsend:
      return GAPLESS_CALL_EITHER(large, Rsend, a.address, a.count, a.type, a.peer, a.tag, a.comm);
    case Call::recv:
      return GAPLESS_CALL_EITHER(large, Recv, a.address, a.count, a.type, a.peer, a.tag, a.comm, status);
    case Call::mrecv:
      return GAPLESS_CALL_EITHER(large, Mrecv, a.address, a.count, a.type, &a.message, status);
    case Call::sendrecv:
      return call_sendrecv(a, large, at_send, status);
    case Call::replace:
      return call_replace(a, large, at_send, status);
    case Call::pack:
      return call_pack(a, true);
    case Call::unpack:
      return call_pack(a, false);
    case Call::isend:
      code = MPI_Isend(a.address, a.count, a.type, a.peer, a.tag, a.comm, &request);
      break;
    case Call::irecv:
      code = MPI_Irecv(a.address, a.count, a.type, a.peer, a.tag, a.comm, &request);
      break;
  }
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, status);
  return code;
}

}  // namespace

void run_misuse(const Case& plan, const Context& context, Outcome& outcome) {
  Random random = random_for(plan, 2);
  const Call call = plan.call;
  const Mistake mistake = plan.mistake;
  const bool at_send = random.one_in(2);
  const bool alone = random.one_in(2);
  const Side side = random_receiving_side(random);
  Buffer buffer(side, plan.key + 1, 256);
  const Side packed = plain_bytes(side.bytes, MPI_PACKED);
  Buffer packed_buffer(packed, plan.key + 2, 256 + (side.bytes + 15) / 16 * 16);
  Status status(plan.wants_status);
  MPI_Datatype uncommitted = make_uncommitted();

  Arguments arguments{.address = buffer.base(),
                      .count = side.count,
                      .type = side.type.handle(),
                      .tag = plan.tag,
                      .comm = context.communicator(plan)};
  arguments.packed = packed_buffer.base();
  arguments.packed_size = static_cast<int>(side.bytes);
  make_mistake(mistake, plan, context, uncommitted, alone, arguments);

  outcome.begin(name(call));
  const int code = make(call, arguments, plan.large_send, at_send, status.get());
  note_return(outcome, plan, code);
  if (code == MPI_SUCCESS) status.note(outcome, side);
  if (call == Call::pack || call == Call::unpack) {
    outcome.note("position", arguments.position);
    // Too little room is for the library to see; what it packs and unpacks then is compared by the digests.
    outcome.note("packed", static_cast<long long>(packed_buffer.digest() >> 1));
    outcome.note("data", static_cast<long long>(buffer.digest() >> 1));
  } else {
    note_untouched(outcome, buffer);
  }
  MPI_Type_free(&uncommitted);
}

}  // namespace gapless::test::differential
