// One message from one rank to another, and one each way at once.
#include <array>
#include <thread>

#include "cases/calls.hpp"
#include "support/environment.hpp"

namespace gapless::test::differential {
namespace {

constexpr std::uint64_t data_of(const Case& plan, int world_rank) {
  return plan.key * 31 + static_cast<std::uint64_t>(world_rank) + 1;
}
constexpr std::uint64_t rubbish_of(const Case& plan, int world_rank) { return data_of(plan, world_rank) * 977; }
constexpr std::size_t small_room = 256;

/// Receives get room for all that is sent, so that what is written behind them is seen.
std::size_t room_of(const Case& plan) {
  return plan.is_erroneous() ? small_room + (plan.out.bytes + 15) / 16 * 16 : small_room;
}

int blocking_send(const Case& plan, const Argument& out, int to, MPI_Comm comm) {
  [[maybe_unused]] const bool large = plan.large_send;
  const auto& [address, count, type] = std::tie(out.address, out.count, out.type);
  switch (plan.send) {
    case Send::ssend:
      return GAPLESS_CALL_EITHER(large, Ssend, address, count, type, to, plan.tag, comm);
    case Send::bsend:
      return GAPLESS_CALL_EITHER(large, Bsend, address, count, type, to, plan.tag, comm);
    case Send::rsend:
      return GAPLESS_CALL_EITHER(large, Rsend, address, count, type, to, plan.tag, comm);
    case Send::sendrecv:
      return GAPLESS_CALL_EITHER(large, Sendrecv, address, count, type, to, plan.tag, nullptr, 0, MPI_BYTE,
                                 MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
    case Send::replace:
      return GAPLESS_CALL_EITHER(large, Sendrecv_replace, address, count, type, to, plan.tag, MPI_PROC_NULL, 0, comm,
                                 MPI_STATUS_IGNORE);
    default:
      return GAPLESS_CALL_EITHER(large, Send, address, count, type, to, plan.tag, comm);
  }
}

int start_send(const Case& plan, const Argument& out, int to, MPI_Comm comm, MPI_Request* request) {
  [[maybe_unused]] const bool large = plan.large_send;
  const auto& [address, count, type] = std::tie(out.address, out.count, out.type);
  if (plan.send == Send::issend)
    return GAPLESS_CALL_EITHER(large, Issend, address, count, type, to, plan.tag, comm, request);
  if (plan.send == Send::isend)
    return GAPLESS_CALL_EITHER(large, Isend, address, count, type, to, plan.tag, comm, request);
  if (plan.send == Send::ibsend)
    return GAPLESS_CALL_EITHER(large, Ibsend, address, count, type, to, plan.tag, comm, request);
  if (plan.send == Send::irsend)
    return GAPLESS_CALL_EITHER(large, Irsend, address, count, type, to, plan.tag, comm, request);
  const int code = GAPLESS_CALL_EITHER(large, Send_init, address, count, type, to, plan.tag, comm, request);
  return code == MPI_SUCCESS ? MPI_Start(request) : code;
}

void end_request(MPI_Request& request) {
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

int complete_one(const Case& plan, MPI_Request* request, Status* status) {
  return complete(plan.completion, std::span(request, 1), std::span(&status, 1));
}

/// A send, in two halves if it is nonblocking.
class Sending {
 public:
  Sending(const Case& plan, const Context& context, const Partner& partner)
      : plan_(plan),
        comm_(context.communicator(plan)),
        to_(partner.rank),
        buffer_(plan.out, data_of(plan, context.rank()), small_room),
        argument_(plan.out, buffer_, plan.bottom_send) {
    const bool is_buffered = plan.send == Send::bsend || plan.send == Send::ibsend;
    if (!is_buffered || !plan.scant_buffer || !context.is_alone) return;
    int bytes = 0;
    MPI_Pack_size(argument_.count, argument_.type, comm_, &bytes);
    bsend_buffer_.attach(bytes + MPI_BSEND_OVERHEAD);
  }

  void start() {
    code_ = is_nonblocking(plan_.send) ? start_send(plan_, argument_, to_, comm_, &request_)
                                       : blocking_send(plan_, argument_, to_, comm_);
  }
  void finish(Outcome& outcome) {
    if (code_ == MPI_SUCCESS && request_ != MPI_REQUEST_NULL) code_ = complete_one(plan_, &request_, nullptr);
    end_request(request_);
    outcome.begin(name(plan_.send));
    note_return(outcome, plan_, code_);
    note_untouched(outcome, buffer_);
  }

 private:
  const Case& plan_;
  MPI_Comm comm_;
  int to_;
  Buffer buffer_;
  Argument argument_;
  BsendBuffer bsend_buffer_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int code_ = MPI_SUCCESS;
};

/// A receive, in two halves if it is nonblocking.
class Receiving {
 public:
  Receiving(const Case& plan, const Context& context, const Partner& partner)
      : plan_(plan),
        comm_(context.communicator(plan)),
        from_(plan.any_source ? MPI_ANY_SOURCE : partner.rank),
        tag_(plan.any_tag ? MPI_ANY_TAG : plan.tag),
        partner_(partner),
        buffer_(plan.in, rubbish_of(plan, context.rank()), room_of(plan)),
        argument_(plan.in, buffer_, plan.bottom_receive),
        status_(plan.wants_status) {}

  /// Before a blocking receive, or what the receive consists of until its wait.
  void start() {
    if (plan_.arrival == Arrival::probed) MPI_Probe(from_, tag_, comm_, MPI_STATUS_IGNORE);
    [[maybe_unused]] const bool large = plan_.large_receive;
    const auto& [address, count, type] = std::tie(argument_.address, argument_.count, argument_.type);
    switch (plan_.receive) {
      case Receive::irecv:
        code_ = GAPLESS_CALL_EITHER(large, Irecv, address, count, type, from_, tag_, comm_, &request_);
        break;
      case Receive::imrecv: {
        MPI_Message message;
        MPI_Mprobe(from_, tag_, comm_, &message, MPI_STATUS_IGNORE);
        code_ = GAPLESS_CALL_EITHER(large, Imrecv, address, count, type, &message, &request_);
        break;
      }
      case Receive::recv_init:
        code_ = GAPLESS_CALL_EITHER(large, Recv_init, address, count, type, from_, tag_, comm_, &request_);
        if (code_ == MPI_SUCCESS) code_ = MPI_Start(&request_);
        break;
      default:
        break;
    }
  }

  void finish(Outcome& outcome) {
    if (!is_nonblocking(plan_.receive))
      code_ = receive();
    else if (code_ == MPI_SUCCESS)
      code_ = complete_one(plan_, &request_, plan_.wants_status ? &status_ : nullptr);
    end_request(request_);
    outcome.begin(name(plan_.receive));
    const bool worked = note_return(outcome, plan_, code_);
    if (plan_.is_erroneous()) {
      if (code_ == MPI_SUCCESS) status_.note(outcome, plan_.in);
    } else {
      status_.expect(outcome, partner_.rank, plan_.tag, plan_.out.bytes, plan_.in);
    }
    const Buffer sent(plan_.out, data_of(plan_, partner_.world_rank), small_room);
    note_received(outcome, plan_, buffer_, sent.stream(), !worked);
  }

 private:
  int receive() {
    [[maybe_unused]] const bool large = plan_.large_receive;
    const auto& [address, count, type] = std::tie(argument_.address, argument_.count, argument_.type);
    switch (plan_.receive) {
      case Receive::mrecv: {
        MPI_Message message;
        MPI_Mprobe(from_, tag_, comm_, &message, MPI_STATUS_IGNORE);
        return GAPLESS_CALL_EITHER(large, Mrecv, address, count, type, &message, status_.get());
      }
      case Receive::sendrecv:
        return GAPLESS_CALL_EITHER(large, Sendrecv, nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, address, count, type, from_,
                                   tag_, comm_, status_.get());
      case Receive::replace:
        return GAPLESS_CALL_EITHER(large, Sendrecv_replace, address, count, type, MPI_PROC_NULL, 0, from_, tag_, comm_,
                                   status_.get());
      default:
        return GAPLESS_CALL_EITHER(large, Recv, address, count, type, from_, tag_, comm_, status_.get());
    }
  }

  const Case& plan_;
  MPI_Comm comm_;
  int from_;
  int tag_;
  Partner partner_;
  Buffer buffer_;
  Argument argument_;
  Status status_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int code_ = MPI_SUCCESS;
};

/// The receive has begun elsewhere; a blocking one most likely soon has its request, too.
void wait_until_posted(const Context& context, const Partner& partner) {
  context.wait_for(partner.world_rank, Stage::posted);
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

void run_to_self(const Case& plan, const Context& context, const Partner& partner, Outcome& outcome) {
  Sending sending(plan, context, partner);
  Receiving receiving(plan, context, partner);
  const bool posts_first =
      is_nonblocking(plan.receive) && plan.receive != Receive::imrecv && plan.arrival != Arrival::probed;
  if (posts_first) {
    receiving.start();
    sending.start();
  } else {
    sending.start();
    receiving.start();
  }
  receiving.finish(outcome);
  sending.finish(outcome);
}

// Of an exchange.

int exchange(const Case& plan, const Context& context, int partner, const Argument& out, const Argument& in,
             Status& status) {
  const MPI_Comm comm = context.communicator(plan);
  const int from = plan.any_source ? MPI_ANY_SOURCE : partner;
  const int tag = plan.any_tag ? MPI_ANY_TAG : plan.tag;
  return GAPLESS_CALL_EITHER(plan.large_send, Sendrecv, out.address, out.count, out.type, partner, plan.tag, in.address,
                             in.count, in.type, from, tag, comm, status.get());
}

int exchange_nonblocking(const Case& plan, const Context& context, int partner, const Argument& out, const Argument& in,
                         Status& status) {
  const MPI_Comm comm = context.communicator(plan);
  std::array requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  std::array statuses = {plan.wants_status ? &status : nullptr, static_cast<Status*>(nullptr)};
  int code = MPI_Irecv(in.address, in.count, in.type, partner, plan.tag, comm, &requests[0]);
  if (code == MPI_SUCCESS) code = MPI_Isend(out.address, out.count, out.type, partner, plan.tag, comm, &requests[1]);
  const int completed = complete(plan.completion, requests, statuses);
  // What an error left unfinished.
  for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS ? code : completed;
}

int replace(const Case& plan, const Context& context, int partner, const Argument& both, Status& status) {
  const MPI_Comm comm = context.communicator(plan);
  const int from = plan.any_source ? MPI_ANY_SOURCE : partner;
  const int tag = plan.any_tag ? MPI_ANY_TAG : plan.tag;
  return GAPLESS_CALL_EITHER(plan.large_send, Sendrecv_replace, both.address, both.count, both.type, partner, plan.tag,
                             from, tag, comm, status.get());
}

/// What the partner sends in an exchange, and how much room there was around it: its bytes depend on that.
struct Sent {
  const Side& side;
  std::size_t room;
};

/// Notes what a rank received in an exchange from what its partner sent.
void note_exchange(Outcome& outcome, const Case& plan, const Partner& partner, int code, const Status& status,
                   const Buffer& into, const Sent& sent_by_partner) {
  const bool worked = note_return(outcome, plan, code);
  if (!plan.is_erroneous())
    status.expect(outcome, partner.rank, plan.tag, sent_by_partner.side.bytes, plan.in);
  else if (code == MPI_SUCCESS)
    status.note(outcome, plan.in);
  // Of an erroneous exchange by MPI_Sendrecv_replace one direction is right.
  if (plan.is_erroneous() && &sent_by_partner.side == &plan.in) outcome.note("fits", 1);
  const Buffer sent(sent_by_partner.side, data_of(plan, partner.world_rank), sent_by_partner.room);
  note_received(outcome, plan, into, sent.stream(), !worked);
}

void run_sendrecv(const Case& plan, const Context& context, const Partner& partner, bool nonblocking,
                  Outcome& outcome) {
  Buffer from(plan.out, data_of(plan, context.rank()), small_room);
  Buffer into(plan.in, rubbish_of(plan, context.rank()), room_of(plan));
  const Argument out(plan.out, from, plan.bottom_send);
  const Argument in(plan.in, into, plan.bottom_receive);
  Status status(plan.wants_status);
  outcome.begin(nonblocking ? "Isend and Irecv" : "Sendrecv");
  const int code = nonblocking ? exchange_nonblocking(plan, context, partner.rank, out, in, status)
                               : exchange(plan, context, partner.rank, out, in, status);
  note_exchange(outcome, plan, partner, code, status, into, {plan.out, small_room});
  note_untouched(outcome, from);
}

void run_replace(const Case& plan, const Context& context, const Partner& partner, const Sent& sent, Outcome& outcome) {
  Buffer memory(plan.in, data_of(plan, context.rank()), room_of(plan));
  const Argument both(plan.in, memory, plan.bottom_send);
  Status status(plan.wants_status);
  outcome.begin("Sendrecv_replace");
  const int code = replace(plan, context, partner.rank, both, status);
  note_exchange(outcome, plan, partner, code, status, memory, sent);
}

/// Sends `out`, as much as the partner replaces or not, and receives what it had.
void run_against_replace(const Case& plan, const Context& context, const Partner& partner, Outcome& outcome) {
  Buffer from(plan.out, data_of(plan, context.rank()), small_room);
  Buffer into(plan.in, rubbish_of(plan, context.rank()), small_room);
  const Argument out(plan.out, from, plan.bottom_send);
  const Argument in(plan.in, into, plan.bottom_receive);
  Status status(plan.wants_status);
  outcome.begin("Isend and Irecv");
  const int code = exchange_nonblocking(plan, context, partner.rank, out, in, status);
  note_exchange(outcome, plan, partner, code, status, into, {plan.in, room_of(plan)});
  note_untouched(outcome, from);
}

}  // namespace

void run_message(const Case& plan, const Context& context, Outcome& outcome) {
  const Partner partner = partner_in(plan, context);
  if (plan.to_self) return run_to_self(plan, context, partner, outcome);
  if (partner.sends) {
    Sending sending(plan, context, partner);
    if (plan.arrival == Arrival::posted) wait_until_posted(context, partner);
    sending.start();
    sending.finish(outcome);
  } else if (partner.receives) {
    Receiving receiving(plan, context, partner);
    // Where the sender waits for it, a receive that probes must not wait for the sender.
    const bool posts_first = is_nonblocking(plan.receive) && plan.receive != Receive::imrecv;
    if (!posts_first) context.reach(Stage::posted);
    receiving.start();
    if (posts_first) context.reach(Stage::posted);
    receiving.finish(outcome);
  }
}

void run_exchange(const Case& plan, const Context& context, Outcome& outcome) {
  const Partner partner = partner_in(plan, context);
  if (!partner.sends && !partner.receives) return;
  const bool first = partner.sends;
  switch (plan.exchange) {
    case Exchange::sendrecv:
      return run_sendrecv(plan, context, partner, false, outcome);
    case Exchange::against_nonblocking:
      return run_sendrecv(plan, context, partner, !first, outcome);
    case Exchange::replace:
      return run_replace(plan, context, partner, {plan.in, room_of(plan)}, outcome);
    case Exchange::replace_against_nonblocking:
      if (first) return run_replace(plan, context, partner, {plan.out, small_room}, outcome);
      return run_against_replace(plan, context, partner, outcome);
  }
}

}  // namespace gapless::test::differential
