#include "mpi/headers/speaking.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi::headers {
namespace {

/// Of a communicator's ranks, those in MPI_COMM_WORLD; negative for a process that is not in it.
using WorldRanks = std::vector<int>;

int keyval;

int forget(MPI_Comm, int, void* ranks, void*) {
  delete static_cast<WorldRanks*>(ranks);
  return MPI_SUCCESS;
}

/// A duplicate has its own, made when it is first asked for.
int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

void translate(MPI_Comm communicator, WorldRanks& ranks) {
  int is_inter = 0;
  if (native.Comm_test_inter(communicator, &is_inter) != MPI_SUCCESS || is_inter != 0) return;
  MPI_Group own, world;
  if (native.Comm_group(communicator, &own) != MPI_SUCCESS) return;
  if (native.Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
    int size = 0;
    native.Group_size(own, &size);
    WorldRanks from(static_cast<std::size_t>(size));
    std::iota(from.begin(), from.end(), 0);
    ranks.resize(from.size());
    if (native.Group_translate_ranks(own, size, from.data(), world, ranks.data()) != MPI_SUCCESS) ranks.clear();
    native.Group_free(&world);
  }
  native.Group_free(&own);
}

/// Null where there is no memory.
const WorldRanks* world_ranks(MPI_Comm communicator) noexcept {
  void* attribute = nullptr;
  int found = 0;
  if (native.Comm_get_attr(communicator, keyval, &attribute, &found) != MPI_SUCCESS) return nullptr;
  if (found != 0) return static_cast<const WorldRanks*>(attribute);
  try {
    auto ranks = std::make_unique<WorldRanks>();
    translate(communicator, *ranks);
    if (native.Comm_set_attr(communicator, keyval, ranks.get()) != MPI_SUCCESS) return nullptr;
    return ranks.release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

void start() noexcept {
  if (!transfer::headers::are_wanted() || runtime::library_reads_gpu_memory()) return;
  MPI_Comm parent = MPI_COMM_NULL;
  int rank = 0, size = 0;
  if (native.Comm_get_parent(&parent) != MPI_SUCCESS || parent != MPI_COMM_NULL) return;
  if (native.Comm_create_keyval(copy_nothing, forget, &keyval, nullptr) != MPI_SUCCESS) return;
  native.Comm_rank(MPI_COMM_WORLD, &rank);
  native.Comm_size(MPI_COMM_WORLD, &size);
  transfer::headers::listen(rank, size);
}

void end() noexcept {
  if (are_looked_for()) native.Comm_free_keyval(&keyval);
}

transfer::headers::Inbox* find_inbox(MPI_Comm communicator, int destination) noexcept {
  if (!are_looked_for() || communicator == MPI_COMM_NULL) return nullptr;
  const WorldRanks* ranks = world_ranks(communicator);
  if (ranks == nullptr || destination < 0 || static_cast<std::size_t>(destination) >= ranks->size()) return nullptr;
  return transfer::headers::find_inbox((*ranks)[static_cast<std::size_t>(destination)]);
}

}  // namespace gapless::mpi::headers
