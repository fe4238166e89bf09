#include "endpoints/communicators/assembly.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>

#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "endpoints/rings/sharing.hpp"

namespace gapless::mpi::endpoints {
namespace {

int bits_for(std::size_t values) noexcept {
  int bits = 0;
  while ((std::size_t{1} << bits) < values) ++bits;
  return bits;
}

/// What of the library's tags is left for the program; false if that is less than MPI promises it.
bool make_format(Communicator& communicator) {
  constexpr int least_bits = 15, kind_bits = 2;
  communicator.library_tag_bits = tag_bits(communicator.base);
  communicator.format.user_bits =
      communicator.library_tag_bits - kind_bits - bits_for(static_cast<std::size_t>(communicator.most_locals));
  communicator.tag_upper_bound = communicator.format.upper_bound();
  return communicator.format.user_bits >= least_bits;
}

/// What collectives in two levels need to know.
void lay_out_levels(Communicator& communicator) {
  int block = 0;
  for (std::size_t process = 0; process < communicator.ranks.size(); ++process) {
    const int locals = static_cast<int>(communicator.ranks[process].size());
    if (static_cast<int>(process) == communicator.process) communicator.first_block = block;
    communicator.leaders.push_back(communicator.populated);
    communicator.most_locals = std::max(communicator.most_locals, locals);
    communicator.populated += locals != 0 ? 1 : 0;
    block += locals;
  }
  communicator.is_in_order =
      std::is_sorted(communicator.places.begin(), communicator.places.end(),
                     [](const RankPlace& a, const RankPlace& b) { return a.process < b.process; });
  const int mine = communicator.local_count();
  if (mine != 0)
    communicator.seats = std::make_unique<Seats>(static_cast<std::size_t>(mine), communicator.ranks.size());
}

/// Who is where, and what is left of tags.
int lay_out(Communicator& communicator, int processes) {
  communicator.ranks.resize(static_cast<std::size_t>(processes));
  for (std::size_t rank = 0; rank < communicator.places.size(); ++rank)
    communicator.ranks[static_cast<std::size_t>(communicator.places[rank].process)].push_back(static_cast<int>(rank));
  lay_out_levels(communicator);
  if (make_format(communicator)) return MPI_SUCCESS;
  return code_with_text(MPI_ERR_OTHER, "MPIX_Comm_create_endpoints",
                        "more endpoints than this MPI library's tags have room for");
}

/// Makes the lanes, and the communicator of processes with endpoints.
int connect(Communicator& communicator) {
  for (int lane = 0; communicator.has_peers() && lane < communicator.most_locals; ++lane) {
    MPI_Comm made = MPI_COMM_NULL;
    if (const int code = inner.Comm_split(communicator.base, 0, communicator.process, &made); code != MPI_SUCCESS)
      return code;
    communicator.lanes.push_back(made);
    inner.Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  }
  if (communicator.populated < 2) return MPI_SUCCESS;
  if (communicator.populated == static_cast<int>(communicator.ranks.size())) {
    communicator.processes = communicator.base;
    return MPI_SUCCESS;
  }
  const int colour = communicator.local_count() != 0 ? 0 : MPI_UNDEFINED;
  const int code = inner.Comm_split(communicator.base, colour, communicator.process, &communicator.processes);
  if (communicator.processes != MPI_COMM_NULL) inner.Comm_set_errhandler(communicator.processes, MPI_ERRORS_RETURN);
  return code;
}

/// Makes this process's endpoints, which claim() then takes. An error code.
int open(const std::shared_ptr<Communicator>& communicator, bool has_handles) {
  const std::vector<int>& mine = communicator->ranks[static_cast<std::size_t>(communicator->process)];
  const std::size_t neighbours = communicator->ranks_of_inboxes.size();
  for (const int rank : mine) {
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->communicator = communicator;
    endpoint->rank = rank;
    endpoint->local = communicator->places[static_cast<std::size_t>(rank)].local;
    endpoint->outgoing.resize(neighbours);
    endpoint->incoming = std::vector<IncomingRing>(neighbours);
    endpoint->heard.reserve(neighbours);
    communicator->unclaimed.push_back(endpoint);
    if (has_handles) continue;
    if (const int code = make_handle(&endpoint->handle); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

}  // namespace

int greatest_tag(MPI_Comm base) noexcept {
  int* bound = nullptr;
  int flag = 0;
  inner.Comm_get_attr(base, MPI_TAG_UB, &bound, &flag);
  // Open MPI knows it of the world alone.
  if (flag == 0) inner.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
  return flag != 0 ? *bound : 0;
}

int tag_bits(MPI_Comm base) noexcept {
  if (base == MPI_COMM_NULL) return 31;
  const int greatest = greatest_tag(base);
  int bits = 0;
  while (bits < 31 && ((std::int64_t{1} << (bits + 1)) - 1) <= greatest) ++bits;
  return bits;
}

std::uint64_t identity_of_process() {
  static const std::uint64_t mine = [] {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
  }();
  return mine;
}

std::uint64_t next_number(std::uint64_t count) {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count);
}

namespace {

struct WorldRanks {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, int> all;  ///< by a process's identity
};
WorldRanks& world_ranks() {
  static auto& one = *new WorldRanks;
  return one;
}

}  // namespace

void note_world_rank(std::uint64_t process, int rank) {
  const std::lock_guard lock(world_ranks().mutex);
  world_ranks().all.insert_or_assign(process, rank);
}

int world_rank_of(std::uint64_t process) noexcept {
  const std::lock_guard lock(world_ranks().mutex);
  const auto found = world_ranks().all.find(process);
  return found == world_ranks().all.end() ? MPI_UNDEFINED : found->second;
}

namespace {

/// What all processes say of a step: their own code, or the class of another's.
int agree(const Communicator& communicator, int code) noexcept {
  if (!communicator.has_peers()) return code;
  const int mine = class_of(code);
  int greatest = mine;
  const int failed = inner.Allreduce(&mine, &greatest, 1, MPI_INT, MPI_MAX, communicator.base);
  return code != MPI_SUCCESS ? code : failed != MPI_SUCCESS ? failed : greatest;
}

}  // namespace

int assemble(const std::shared_ptr<Communicator>& communicator, int processes, Brought brought) {
  static_assert(MPI_SUCCESS == 0);
  int code = brought.value_or(MPI_SUCCESS);
  if (code == MPI_SUCCESS) code = code_of([&] { return lay_out(*communicator, processes); });
  code = agree(*communicator, code);
  if (code != MPI_SUCCESS) return code;
  code = code_of([&] {
    int failed = connect(*communicator);
    if (failed == MPI_SUCCESS) failed = share_inboxes(*communicator);
    return failed == MPI_SUCCESS ? open(communicator, brought.has_value()) : failed;
  });
  return agree(*communicator, code);
}

int make_handle(MPI_Comm* handle) noexcept {
  static std::mutex mutex;
  static MPI_Comm seed = MPI_COMM_NULL;
  static bool is_made = false;
  const std::lock_guard lock(mutex);
  if (!is_made) {
    if (const int code = inner.Comm_split(MPI_COMM_SELF, 0, 0, &seed); code != MPI_SUCCESS) return code;
    inner.Comm_set_errhandler(seed, MPI_ERRORS_RETURN);
    is_made = true;
  }
  return inner.Comm_split(seed, 0, 0, handle);
}

namespace {

void set_handler_of(MPI_Comm like, MPI_Comm handle) noexcept {
  MPI_Errhandler handler;
  inner.Comm_get_errhandler(like, &handler);
  inner.Comm_set_errhandler(handle, handler);
  native.Errhandler_free(&handler);
}

std::shared_ptr<Endpoint> take(Communicator& communicator, int local) {
  const std::lock_guard lock(communicator.mutex);
  return std::move(communicator.unclaimed[static_cast<std::size_t>(local)]);
}

int enter_claimed(const std::shared_ptr<Endpoint>& endpoint) {
  return enter(endpoint) ? MPI_SUCCESS
                         : code_with_text(MPI_ERR_OTHER, "MPIX_Comm_create_endpoints", "too many endpoints");
}

/// The caller sets the error handler.
int claim_made(Communicator& communicator, int local, MPI_Comm* handle) {
  const auto endpoint = take(communicator, local);
  if (const int code = enter_claimed(endpoint); code != MPI_SUCCESS) {
    inner.Comm_free(&endpoint->handle);
    return code;
  }
  *handle = endpoint->handle;
  return MPI_SUCCESS;
}

}  // namespace

int make_handle_like(MPI_Comm like, MPI_Comm* handle) noexcept {
  const int code = make_handle(handle);
  if (code == MPI_SUCCESS) set_handler_of(like, *handle);
  return code;
}

int claim(Communicator& communicator, int local, MPI_Comm handle) {
  const auto endpoint = take(communicator, local);
  endpoint->handle = handle;
  return enter_claimed(endpoint);
}

int claim(Communicator& communicator, int local, MPI_Errhandler handler, MPI_Comm* handle) {
  const int code = claim_made(communicator, local, handle);
  if (code == MPI_SUCCESS) inner.Comm_set_errhandler(*handle, handler);
  return code;
}

int claim_like(MPI_Comm like, Communicator& communicator, int local, MPI_Comm* handle) {
  const int code = claim_made(communicator, local, handle);
  if (code == MPI_SUCCESS) set_handler_of(like, *handle);
  return code;
}

void give_up(Communicator& communicator) noexcept {
  std::vector<std::shared_ptr<Endpoint>> last;  // each keeps the communicator, which keeps them
  {
    const std::lock_guard lock(communicator.mutex);
    last.swap(communicator.unclaimed);
  }
  for (const auto& endpoint : last) {
    if (endpoint != nullptr && endpoint->handle != MPI_COMM_NULL) inner.Comm_free(&endpoint->handle);
  }
}

}  // namespace gapless::mpi::endpoints
