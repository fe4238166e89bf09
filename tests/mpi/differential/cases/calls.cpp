#include "cases/calls.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "support/environment.hpp"

namespace gapless::test::differential {
namespace {

thread_local int handler_count = 0;

/// By name: the numbers differ between MPI libraries.
std::string name_of_class(int code) {
  switch (const int error = error_class(code)) {
    case MPI_SUCCESS:
      return "SUCCESS";
    case MPI_ERR_TRUNCATE:
      return "TRUNCATE";
    case MPI_ERR_TYPE:
      return "TYPE";
    case MPI_ERR_COUNT:
      return "COUNT";
    case MPI_ERR_RANK:
      return "RANK";
    case MPI_ERR_TAG:
      return "TAG";
    case MPI_ERR_COMM:
      return "COMM";
    case MPI_ERR_BUFFER:
      return "BUFFER";
    case MPI_ERR_ARG:
      return "ARG";
    case MPI_ERR_REQUEST:
      return "REQUEST";
    case MPI_ERR_INTERN:
      return "INTERN";
    case MPI_ERR_IN_STATUS:
      return "IN_STATUS";
    case MPI_ERR_OTHER:
      return "OTHER";
    default:
      return std::to_string(error);
  }
}

/// What arrived of a message whose types need not fit.
std::string text_of(const Difference& difference, std::uint64_t digest) {
  if (difference.inside == 0) return "right";
  return std::to_string(difference.inside) + "@" + std::to_string(difference.first) + "#" + std::to_string(digest);
}

}  // namespace

void Outcome::expect(const char* what, long long wanted, long long found) {
  note(what, found);
  if (wanted == found) return;
  text_ += "(not " + std::to_string(wanted) + ")";
  is_right_ = false;
}

void Context::wait_for(int rank, Stage stage) const {
  job->wait_for(rank, thread, ordinal, stage, [this] {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, quiet, &flag, MPI_STATUS_IGNORE);
  });
}

void count_error(MPI_Comm*, int*, ...) { ++handler_count; }

int handler_calls() { return std::exchange(handler_count, 0); }

Partner partner_in(const Case& plan, const Context& context) {
  const int ranks = context.ranks();
  const int me = context.rank();
  if (plan.to_self) return {true, true, me, me};
  if (plan.inter) {
    const int lower = ranks / 2;
    const bool is_lower = me < lower;
    const int place = is_lower ? me : me - lower;
    if (place >= lower) return {};  // the odd one
    const bool sends = is_lower == (plan.shuffle % 2 == 0);
    return {sends, !sends, place, is_lower ? lower + place : place};
  }
  Random random(static_cast<std::uint64_t>(plan.shuffle));
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  for (int k = ranks - 1; k > 0; --k)
    std::swap(order[static_cast<std::size_t>(k)], order[static_cast<std::size_t>(random.between(0, k))]);
  for (std::size_t k = 0; k + 1 < order.size(); k += 2) {
    if (order[k] == me) return {true, false, order[k + 1], order[k + 1]};
    if (order[k + 1] == me) return {false, true, order[k], order[k]};
  }
  return {};
}

Argument::Argument(const Side& side, Buffer& buffer, bool from_bottom)
    : address(buffer.base()), count(side.count), type(side.type.handle()) {
  if (!from_bottom || side.bytes == 0) return;
  MPI_Aint place;
  MPI_Get_address(buffer.base(), &place);
  const int length = side.count;
  MPI_Type_create_hindexed(1, &length, &place, side.type.handle(), &type);
  MPI_Type_commit(&type);
  owns_type_ = true;
  address = MPI_BOTTOM;
  count = 1;
}

Argument::~Argument() {
  if (owns_type_) MPI_Type_free(&type);
}

void BsendBuffer::attach_roomy() {
  static std::vector<char> memory(std::size_t{16} << 20);
  MPI_Buffer_attach(memory.data(), static_cast<int>(memory.size()));
}

void BsendBuffer::detach() {
  void* memory;
  int bytes;
  MPI_Buffer_detach(&memory, &bytes);
}

void BsendBuffer::attach(int bytes) {
  own_.resize(static_cast<std::size_t>(bytes));
  detach();
  MPI_Buffer_attach(own_.data(), bytes);
}

BsendBuffer::~BsendBuffer() {
  if (own_.empty()) return;
  detach();
  attach_roomy();
}

Status::Status(bool wanted) : wanted_(wanted) { std::memset(&status_, 0x5a, sizeof status_); }

namespace {

/// Has the side elements of one kind, and no pairs? Libraries differ in how many elements a pair is, and of several
/// kinds MPICH 5.0.2 divides by zero in MPI_Get_elements.
bool is_countable(const Side& side) {
  const std::string text = side.type.text();
  const auto names = [&](const char* word) { return text.find(word) != std::string::npos; };
  return !names("2INT") && !names("value_index") &&
         std::ranges::all_of(side.elements, [&](const Element& e) { return e.basic == side.elements[0].basic; });
}

int elements_in(const MPI_Status& status, const Side& into) {
  int elements = -1;
  MPI_Get_elements(&status, into.type.handle(), &elements);
  return elements;
}

/// How many elements of a countable side the first `bytes` of a message fill.
long long elements_of(const Side& side, std::size_t bytes) {
  // Plain bytes are put down as one.
  const Element& first = side.elements[0];
  return static_cast<long long>(first.basic == MPI_BYTE || first.basic == MPI_PACKED ? bytes : bytes / first.size);
}

}  // namespace

void Status::note(Outcome& outcome, const Side& into) const {
  if (!wanted_) return;
  int bytes = -1;
  MPI_Get_count(&status_, MPI_BYTE, &bytes);
  outcome.note("source", status_.MPI_SOURCE);
  outcome.note("tag", status_.MPI_TAG);
  outcome.note("bytes", bytes);
  if (bytes > 0 && into.bytes > 0 && is_countable(into)) outcome.note("elements", elements_in(status_, into));
}

void Status::expect(Outcome& outcome, int source, int tag, std::size_t bytes, const Side& into) const {
  if (!wanted_) return;
  int received = -1;
  MPI_Get_count(&status_, MPI_BYTE, &received);
  outcome.expect("source", source, status_.MPI_SOURCE);
  outcome.expect("tag", tag, status_.MPI_TAG);
  outcome.expect("bytes", static_cast<long long>(bytes), received);
  if (bytes > 0 && is_countable(into)) outcome.expect("elements", elements_of(into, bytes), elements_in(status_, into));
}

bool note_return(Outcome& outcome, const Case& plan, int code) {
  const int handled = handler_calls();
  outcome.count_check();
  outcome.note("class", name_of_class(code));
  outcome.note("handler", handled);
  if (!plan.is_erroneous() && (code != MPI_SUCCESS || handled != 0)) outcome.find_wrong();
  return code == MPI_SUCCESS && handled == 0;
}

void note_received(Outcome& outcome, const Case& plan, const Buffer& buffer, const Stream& stream, bool erred) {
  const Difference difference = buffer.compare(stream);
  if (difference.outside > 0) {
    outcome.note("outside", std::to_string(difference.outside) + "@" + std::to_string(difference.first_out));
    outcome.find_wrong();
  }
  if (plan.is_erroneous()) {
    if (!erred) outcome.note("data", text_of(difference, buffer.digest(stream)));
  } else if (difference.inside > 0) {
    outcome.note("wrong", std::to_string(difference.inside) + "@" + std::to_string(difference.first));
    outcome.find_wrong();
  }
}

void note_untouched(Outcome& outcome, const Buffer& buffer) {
  const Difference difference = buffer.compare({});
  if (difference.inside == 0 && difference.outside == 0) return;
  outcome.note("overwritten", static_cast<long long>(difference.inside + difference.outside));
  outcome.find_wrong();
}

}  // namespace gapless::test::differential
