#include "mpi/calls/by_messages/agreement.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/settings.hpp"
#include "mpi/datatypes/type_cache.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors_returned.hpp"
#include "mpi/lifetime/nodes.hpp"
#include "mpi/lifetime/own_attribute.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::mpi::by_messages {
namespace internal {

using model::AgreedWay;
using Way = AgreedWay::Way;

namespace {

/// All agreements of this process, in the order of their making, which is the same on all ranks of a communicator.
struct Agreements {
  std::mutex mutex;  ///< guards all below
  bool has_keyval = false;
  int keyval = 0;
  int lanes = 0;
  std::vector<std::unique_ptr<Agreement>> all;
};
/// MPICH has 2048 communicators, most of which are to be the program's.
constexpr int most_lanes = 512;

/// The agreement of communicators on which a rank has had no memory for one, or that have strangers.
Agreement& no_agreement() noexcept {
  static Agreement& instance = *new Agreement{.is_over = true};
  return instance;
}

Agreements& agreements() noexcept {
  static Agreements& instance = *new Agreements;
  return instance;
}

/// The attribute's delete callback: the communicator ends, on all of its ranks.
int forget(MPI_Comm, int, void* value, void*) {
  Agreements& them = agreements();
  auto* const agreement = static_cast<Agreement*>(value);
  if (agreement == &no_agreement()) return MPI_SUCCESS;
  const bool has_lane = agreement->lane != MPI_COMM_NULL;
  if (has_lane) native.Comm_free(&agreement->lane);
  const std::lock_guard lock(them.mutex);
  them.lanes -= has_lane ? 1 : 0;
  std::erase_if(them.all, [agreement](const auto& one) { return one.get() == agreement; });
  return MPI_SUCCESS;
}

/// What one rank tells all others in a vote. The largest of all ranks' numbers counts.
struct Ballot {
  static constexpr float none = 0, now = 1, for_good = 2;
  float refusal = none, wish = 0, by_library_ns = 0, by_messages_ns = 0;

  /// Collective: the result of all ranks' ballots.
  Ballot cast(MPI_Comm communicator) const noexcept {
    constexpr int numbers = sizeof(Ballot) / sizeof(float);
    Ballot heard;
    const int code = native.Allreduce(this, &heard, numbers, MPI_FLOAT, MPI_MAX, communicator);
    return code == MPI_SUCCESS ? heard : Ballot{.refusal = now};
  }
};

/// Tells the other ranks, which vote for the first time as well, that this rank can make no agreement.
void refuse(MPI_Comm communicator) noexcept {
  static_cast<void>(Ballot{.refusal = Ballot::for_good}.cast(communicator));
}

/// Makes the agreement of a communicator. Null if the library refuses. Throws std::bad_alloc.
Agreement* make(MPI_Comm communicator) {
  Agreements& them = agreements();
  Agreement* const made = [&] {
    const std::lock_guard lock(them.mutex);
    return them.all.emplace_back(std::make_unique<Agreement>()).get();
  }();
  // A library may hold a lock of its own here and in delete callbacks, one of which takes the mutex.
  if (native.Comm_set_attr(communicator, them.keyval, made) == MPI_SUCCESS) return made;
  static_cast<void>(forget(communicator, them.keyval, made, nullptr));
  return nullptr;
}

bool is_between_groups(MPI_Comm communicator) noexcept {
  int is_inter = 1;
  return native.Comm_test_inter(communicator, &is_inter) != MPI_SUCCESS || is_inter != 0;
}

bool has_keyval() noexcept {
  Agreements& them = agreements();
  const std::lock_guard lock(them.mutex);
  if (!them.has_keyval) them.has_keyval = make_keyval(forget, them.keyval);
  return them.has_keyval;
}

bool are_too_many_lanes() noexcept {
  Agreements& them = agreements();
  const std::lock_guard lock(them.mutex);
  return them.lanes >= most_lanes;
}
void count_lane() noexcept {
  Agreements& them = agreements();
  const std::lock_guard lock(them.mutex);
  ++them.lanes;
}

/// Makes the communicator of the messages. True if all ranks have one: the same answer on all ranks.
bool make_lane(Agreement& agreement, MPI_Comm communicator) noexcept {
  int rank = 0;
  native.Comm_rank(communicator, &rank);
  const bool is_made = [&] {
    // The library may have no communicators left, which is no error of the program's.
    const ErrorsReturned meanwhile(communicator, ErrorsReturned::Fatal::is_replaced);
    // A duplicate would call the program's copy callbacks.
    return native.Comm_split(communicator, 0, rank, &agreement.lane) == MPI_SUCCESS;
  }();
  if (!is_made) agreement.lane = MPI_COMM_NULL;
  headers::note_made(agreement.lane);
  const Ballot heard = Ballot{is_made ? Ballot::none : Ballot::for_good}.cast(communicator);
  if (heard.refusal == Ballot::none) {
    native.Comm_set_errhandler(agreement.lane, MPI_ERRORS_RETURN);
    count_lane();
    return true;
  }
  if (is_made) native.Comm_free(&agreement.lane);
  return false;
}

}  // namespace

Agreement* of(MPI_Comm communicator) noexcept {
  if (communicator == MPI_COMM_NULL || !has_keyval()) return nullptr;
  void* value = nullptr;
  int is_there = 0;
  if (native.Comm_get_attr(communicator, agreements().keyval, &value, &is_there) != MPI_SUCCESS) return nullptr;
  if (is_there != 0) return static_cast<Agreement*>(value);
  if (is_between_groups(communicator)) return nullptr;
  try {
    if (!has_strangers(communicator)) {
      if (Agreement* const made = make(communicator)) return made;
      refuse(communicator);
    }
  } catch (const std::exception&) {
    refuse(communicator);
  }
  native.Comm_set_attr(communicator, agreements().keyval, &no_agreement());
  return nullptr;
}

AgreedWay* way_of(Agreement& agreement, MPI_Comm communicator, int kind) noexcept {
  if (agreement.is_over) return nullptr;
  try {
    return &agreement.ways[kind];
  } catch (const std::exception&) {
    refuse(communicator);
    agreement.is_over = true;
    return nullptr;
  }
}

void vote(Agreement& agreement, AgreedWay& way, MPI_Comm communicator, Wish wish, bool can) noexcept {
  const bool may = can && transfer::headers::is_listening();
  const bool needs_too_many = agreement.lane == MPI_COMM_NULL && are_too_many_lanes();
  const float refusal = needs_too_many ? Ballot::for_good : may ? Ballot::none : Ballot::now;
  const Ballot told{refusal, static_cast<float>(wish), way.least_ns(Way::library), way.least_ns(Way::other)};
  const Ballot heard = told.cast(communicator);
  agreement.is_over = heard.refusal == Ballot::for_good;
  if (heard.refusal != Ballot::none) return way.decide(Wish::library, 0, 0);
  way.decide(static_cast<Wish>(heard.wish), heard.by_library_ns, heard.by_messages_ns);
  if (way.way() == Way::library || agreement.lane != MPI_COMM_NULL) return;
  if (make_lane(agreement, communicator)) return;
  agreement.is_over = true;
  way.decide(Wish::library, 0, 0);
}

}  // namespace internal

bool has_strangers(MPI_Comm communicator) noexcept {
  int has_world = 0;
  native.Initialized(&has_world);
  return has_world != 0 && !headers::is_within_world(communicator);
}

bool may_be() noexcept {
  static const bool answer = settings().all_ranks && (is_job_on_one_node() || transfer::rdma::is_wanted());
  return answer && runtime::start();
}

namespace {

enum { all_w, all_v, gathers_v, neighbors, neighbors_w, neighbors_v, neighbors_gather, neighbors_gather_v, of_sizes };
/// Forms that have a kind for each magnitude of a part's size.
enum class Sized { alltoall, allgather, bcast, gather, scatter, reductions };

constexpr int kind_of_size(Sized form, int magnitude) noexcept {
  constexpr int magnitudes = 64;
  return magnitude < 0 ? -1 : of_sizes + static_cast<int>(form) * magnitudes + magnitude;
}

/// Of exchanges within a node whose size all ranks know. Shorter ones of host memory would lose by the question whether
/// the ranks agree.
constexpr layout::Offset least_part_bytes = 1024;
/// Of operands of reductions. Shorter ones are sooner through the host (OSU's osu_allreduce between two H200s).
constexpr layout::Offset least_reduced_bytes = 16 << 10;

/// The size of one of the argument's parts, which are equal; negative for a mistake of the program, which the library
/// tells.
std::int64_t bytes_of_part(const MemoryArgument& argument) noexcept {
  const MPI_Count count = argument.counts[0];
  const TypeRecord* const known = type_cache::find_in_table(argument.datatype);
  const bool is_nowhere = argument.memory == nullptr && known != nullptr && known->is_predefined && count != 0;
  if (count < 0 || is_nowhere) return -1;
  MPI_Count size = known != nullptr ? known->size : 0;
  if (size == 0) {
    if (!runtime::is_usable(argument.datatype)) return -1;
    native.Type_size_x(argument.datatype, &size);
  }
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? -1 : bytes;
}

/// The magnitude of a size. Negative for sizes below `least`.
int magnitude_of(std::int64_t bytes, layout::Offset least) noexcept {
  return bytes < least ? -1 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes)));
}
int magnitude_of_part(const MemoryArgument& argument, layout::Offset least) noexcept {
  return magnitude_of(bytes_of_part(argument), least);
}

/// Of a call with a root, of which most are short: the library is not asked for ranks until a part has been found long.
/// A root that makes a mistake gets its error from the library, and waits for nobody.
int kind_with_root(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in) noexcept {
  using table::RoleKind;
  if (call.root < 0) return -1;  // between two groups, or a mistake
  const bool is_gather = out.kind == RoleKind::send, is_broadcast = out.kind == RoleKind::broadcast;
  // The root alone has an argument for all ranks' parts, and may leave out the other one.
  const MemoryArgument& of_all = is_gather ? out : in;
  const MemoryArgument& of_root = is_gather ? in : out;
  const int magnitude = magnitude_of_part(of_all.is_in_place() ? of_root : of_all, least_part_bytes);
  if (magnitude < 0 || call.root >= count_entries(call.communicator, CountsOf::processes)) return -1;
  if (call.is_at_root() && bytes_of_part(of_root) < 0) return -1;
  return kind_of_size(is_gather ? Sized::gather : is_broadcast ? Sized::bcast : Sized::scatter, magnitude);
}

int kind_of_neighbors(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in) noexcept {
  using table::RoleKind;
  const Neighbors& neighbors_of_call = call.neighbors();
  if (!neighbors_of_call.has_topology() || neighbors_of_call.are_twins()) return -1;
  if (out.kind == RoleKind::send)
    return in.kind == RoleKind::receive_from_neighbors ? neighbors_gather : neighbors_gather_v;
  if (out.kind == RoleKind::send_to_neighbors) return neighbors;
  return out.kind == RoleKind::send_to_neighbors_w ? neighbors_w : neighbors_v;
}

}  // namespace

bool is_kind_of_neighbors(int kind) noexcept { return kind >= neighbors && kind < of_sizes; }

int kind_of(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in) noexcept {
  using table::RoleKind;
  const bool has_fabric = transfer::rdma::is_wanted(), is_gather = out.kind == RoleKind::send;
  const bool is_from_gpu_to_gpu = call.has_root || is_gather || out.kind == RoleKind::send_to_neighbors;
  if (has_fabric && is_from_gpu_to_gpu) return -1;
  if (call.has_root) return kind_with_root(call, out, in);
  const bool may_be_in_place = is_gather && !is_of_neighbors(in.kind);
  if (out.is_in_place() && !may_be_in_place) return -1;
  if (is_of_neighbors(in.kind)) return kind_of_neighbors(call, out, in);
  if (out.kind == RoleKind::send_to_all_w) return all_w;
  if (out.kind == RoleKind::send_to_all_v) return all_v;
  if (in.kind == RoleKind::receive_from_all_v) return gathers_v;
  if (is_gather) return kind_of_size(Sized::allgather, magnitude_of_part(in, least_part_bytes));
  const layout::Offset least = has_fabric ? transfer::rdma::least_bytes : least_part_bytes;
  return kind_of_size(Sized::alltoall, magnitude_of_part(out, least));
}

int kind_of_reduction(ReductionForm form, MPI_Count elements, MPI_Count bytes) noexcept {
  std::int64_t all = 0;
  if (elements < 0 || bytes < 0 || __builtin_mul_overflow(elements, bytes, &all)) return -1;
  const auto sized = static_cast<Sized>(static_cast<int>(Sized::reductions) + static_cast<int>(form));
  return kind_of_size(sized, magnitude_of(all, least_reduced_bytes));
}

void end() noexcept {
  internal::Agreements& them = internal::agreements();
  for (const auto& agreement : them.all) {
    if (agreement->lane != MPI_COMM_NULL) native.Comm_free(&agreement->lane);
  }
  if (them.has_keyval) native.Comm_free_keyval(&them.keyval);
  them.has_keyval = false;
}

}  // namespace gapless::mpi::by_messages
