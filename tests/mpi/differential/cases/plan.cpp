#include "cases/plan.hpp"

#include <array>

#include "sides/sides.hpp"

namespace gapless::test::differential {
namespace {

constexpr std::array<const char*, families> family_names = {"message", "exchange", "truncation",
                                                            "partial", "packing",  "misuse"};
constexpr std::array<const char*, sends> send_names = {
    "Send",  "Ssend",  "Bsend",  "Rsend",  "Sendrecv", "Sendrecv_replace",
    "Isend", "Issend", "Ibsend", "Irsend", "Send_init"};
constexpr std::array<const char*, completions> completion_names = {
    "Wait", "Waitall", "Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome", "Request_get_status and Wait"};
constexpr std::array<const char*, receives> receive_names = {"Recv",  "Mrecv",  "Sendrecv", "Sendrecv_replace",
                                                             "Irecv", "Imrecv", "Recv_init"};
constexpr std::array<const char*, 3> arrival_names = {"", ", posted first", ", probed first"};
constexpr std::array<const char*, 4> exchange_names = {
    "Sendrecv", "Sendrecv_replace", "Sendrecv against Isend and Irecv", "Sendrecv_replace against Isend and Irecv"};

constexpr std::array<const char*, calls> call_names = {"Send", "Ssend",  "Bsend",    "Rsend",
                                                       "Recv", "Mrecv",  "Sendrecv", "Sendrecv_replace",
                                                       "Pack", "Unpack", "Isend",    "Irecv"};
constexpr std::array<const char*, mistakes> mistake_names = {"MPI_PROC_NULL",
                                                             "a rank too large",
                                                             "a negative rank",
                                                             "a negative tag",
                                                             "a negative count",
                                                             "MPI_DATATYPE_NULL",
                                                             "a type not committed",
                                                             "MPI_COMM_NULL",
                                                             "a communicator never set",
                                                             "MPI_MESSAGE_NULL",
                                                             "a null buffer",
                                                             "a packed buffer too small",
                                                             "a position beyond the end"};

/// Numbers that follow each other give seeds that do not.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

template <typename Kind>
Kind any_of(Random& random, int kinds) {
  return static_cast<Kind>(random.between(0, kinds - 1));
}

Fit fit_of(Random& random, Family family) {
  const bool of_other_type = random.one_in(3);
  if (family == Family::truncation) return of_other_type ? Fit::longer_of_other_type : Fit::longer;
  if (family == Family::partial) return of_other_type ? Fit::not_longer_of_other_type : Fit::inside_element;
  return random.one_in(3) ? Fit::shorter : Fit::equal;
}

/// Ways of sending and receiving that can meet: no deadlock, and nothing that only timing makes right.
void reconcile_ways(Case& plan) {
  const bool is_ready = plan.send == Send::rsend || plan.send == Send::irsend;
  if (is_ready && !is_nonblocking(plan.receive)) plan.receive = Receive::irecv;
  if (is_ready && plan.receive == Receive::imrecv) plan.receive = Receive::recv_init;
  if (is_ready) plan.arrival = Arrival::posted;
  const bool starts_by_itself = is_nonblocking(plan.send) || plan.send == Send::bsend;
  const bool wants_message_first =
      !is_nonblocking(plan.receive) || plan.receive == Receive::imrecv || plan.arrival == Arrival::probed;
  if (plan.to_self && wants_message_first && !starts_by_itself) plan.send = Send::isend;
}

void draw_exchange(Random& random, Case& plan, Fit fit) {
  plan.exchange = any_of<Exchange>(random, 4);
  // Only a peer that does not replace can send more, or less, than it takes.
  if (fit != Fit::equal && plan.exchange == Exchange::replace) plan.exchange = Exchange::replace_against_nonblocking;
  if (plan.to_self && plan.exchange == Exchange::against_nonblocking) plan.exchange = Exchange::sendrecv;
  if (plan.to_self && plan.exchange == Exchange::replace_against_nonblocking)
    plan.exchange = fit == Fit::equal ? Exchange::replace : Exchange::sendrecv;
}

template <std::size_t size>
Mistake any_of(Random& random, const std::array<Mistake, size>& mistakes) {
  return mistakes[static_cast<std::size_t>(random.between(0, size - 1))];
}

/// The mistakes that a call has an argument for. Open MPI 5.0.11 ends the program at some of them.
Mistake draw_mistake(Random& random, Call call) {
  using enum Mistake;
#ifdef OPEN_MPI
  static constexpr std::array of_matched = {none};
  static constexpr std::array of_packing = {count_negative,     type_null,        type_uncommitted, communicator_null,
                                            communicator_unset, packed_too_small, position_beyond};
#else
  static constexpr std::array of_matched = {none, count_negative, type_null, type_uncommitted, null_message};
  static constexpr std::array of_packing = {count_negative,     type_null,   type_uncommitted, communicator_null,
                                            communicator_unset, null_buffer, packed_too_small, position_beyond};
#endif
  static constexpr std::array of_messages = {
      none,      rank_too_large,   rank_negative,     tag_negative,      count_negative,
      type_null, type_uncommitted, communicator_null, communicator_unset};
  if (call == Call::mrecv) return any_of(random, of_matched);
  return call == Call::pack || call == Call::unpack ? any_of(random, of_packing) : any_of(random, of_messages);
}

}  // namespace

const char* name(Call call) { return call_names[static_cast<std::size_t>(call)]; }
const char* name(Family family) { return family_names[static_cast<std::size_t>(family)]; }
const char* name(Completion completion) { return completion_names[static_cast<std::size_t>(completion)]; }
const char* name(Send kind) { return send_names[static_cast<std::size_t>(kind)]; }
const char* name(Receive kind) { return receive_names[static_cast<std::size_t>(kind)]; }

Family family_of(std::uint64_t seed, std::uint64_t number) {
  static constexpr std::array shares = {Family::message,    Family::message,    Family::message,  Family::message,
                                        Family::message,    Family::exchange,   Family::exchange, Family::exchange,
                                        Family::truncation, Family::truncation, Family::partial,  Family::packing,
                                        Family::packing,    Family::misuse};
  return shares[mix(seed ^ mix(number)) % shares.size()];
}

Random random_for(const Case& plan, std::uint64_t purpose) { return Random(mix(plan.key + purpose)); }

Case plan(std::uint64_t seed, std::uint64_t number, int ranks) {
  Case plan;
  plan.number = number;
  plan.key = mix(mix(seed) + number);
  plan.family = family_of(seed, number);
  Random random(plan.key);
  plan.user_handler = random.one_in(2);
  plan.inter = random.one_in(4) && ranks > 1;
  plan.to_self = (random.one_in(8) && !plan.inter) || ranks == 1;
  plan.shuffle = random.between(0, 1000);
  plan.tag = random.between(0, 30000);
  plan.send = any_of<Send>(random, sends);
  plan.receive = any_of<Receive>(random, receives);
  plan.arrival = any_of<Arrival>(random, 3);
  plan.large_send = random.one_in(4);
  plan.large_receive = random.one_in(4);
  plan.any_source = random.one_in(3);
  plan.any_tag = random.one_in(3);
  plan.wants_status = !random.one_in(4);
  plan.bottom_send = random.one_in(16);
  plan.bottom_receive = random.one_in(16);
  plan.scant_buffer = random.one_in(3);
  plan.completion = any_of<Completion>(random, completions);
  plan.call = any_of<Call>(random, calls);
  plan.mistake = draw_mistake(random, plan.call);
  if (plan.family == Family::packing || plan.family == Family::misuse) return plan;

  const Fit fit = fit_of(random, plan.family);
  plan.exchanges = plan.family == Family::exchange || (plan.is_erroneous() && random.one_in(4));
  if (plan.exchanges) draw_exchange(random, plan, fit);
  reconcile_ways(plan);
  Pair pair = random_pair(random, fit);
  plan.out = std::move(pair.out);
  plan.in = std::move(pair.in);
  // What is replaced is received into, too, if only in form.
  if (plan.send == Send::replace && overlaps(plan.out)) plan.send = Send::send;
  return plan;
}

std::string Case::text() const {
  std::string text = "case " + std::to_string(number) + ", " + name(family) + ": ";
  if (out.type.handle() != MPI_DATATYPE_NULL) {
    if (exchanges) {
      text += exchange_names[static_cast<std::size_t>(exchange)];
    } else {
      text += std::string(name(send)) + " to " + name(receive) + arrival_names[static_cast<std::size_t>(arrival)];
    }
    if (exchanges || is_nonblocking(send) || is_nonblocking(receive)) text += std::string(", ") + name(completion);
    if (large_send) text += ", _c to send";
    if (large_receive) text += ", _c to receive";
    if (any_source) text += ", any source";
    if (any_tag) text += ", any tag";
    if (!wants_status) text += ", status ignored";
    if (bottom_send) text += ", from MPI_BOTTOM";
    if ((send == Send::bsend || send == Send::ibsend) && scant_buffer) text += ", scant buffer";
    if (bottom_receive) text += ", into MPI_BOTTOM";
  }
  if (family == Family::misuse)
    text += std::string(name(call)) + " with " + mistake_names[static_cast<std::size_t>(mistake)];
  if (inter) text += ", intercommunicator";
  if (to_self) text += ", to itself";
  text += user_handler ? ", handler that returns" : ", MPI_ERRORS_RETURN";
  if (out.type.handle() != MPI_DATATYPE_NULL) text += "\n  sent: " + out.text() + "\n  received: " + in.text();
  return text;
}

}  // namespace gapless::test::differential
