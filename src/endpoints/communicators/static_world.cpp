#include "endpoints/communicators/static_world.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include "endpoints/communicators/creation.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints {

constinit thread_local const Worlds* attached_to = nullptr;

namespace {

constexpr const char* init_name = "MPIX_Init_endpoints";
constexpr const char* attach_name = "MPIX_Endpoint_attach";

struct StaticEndpoint {
  Worlds worlds;
  std::atomic<bool> is_bound{false};
};

/// Never freed: a thread may end after MPI_Finalize.
struct StaticWorld {
  std::unique_ptr<StaticEndpoint[]> endpoints;
  int count = 0;
  std::atomic<bool> is_open{false};
};

StaticWorld& static_world() noexcept {
  static auto& one = *new StaticWorld;
  return one;
}

/// Null: the thread is attached to none.
void set_worlds(const Worlds* worlds) noexcept {
  attached_to = worlds;
  self_of_thread = worlds != nullptr ? &worlds->self : nullptr;
}

/// Lets go of the endpoint when the thread ends.
struct Binding {
  StaticEndpoint* endpoint = nullptr;
  ~Binding() {
    set_worlds(nullptr);
    if (endpoint != nullptr) endpoint->is_bound.store(false, std::memory_order_release);
  }
};
thread_local Binding binding;

/// A copy whose errors are returned.
int quiet_copy(MPI_Comm communicator, MPI_Comm* copy) noexcept {
  const int code = inner.Comm_dup(communicator, copy);
  return code != MPI_SUCCESS ? code : inner.Comm_set_errhandler(*copy, MPI_ERRORS_RETURN);
}

/// Makes `count` endpoints on a copy of `like`, with its error handler and `name`.
int make_like(MPI_Comm like, int count, const char* name, MPI_Comm* handles) {
  MPI_Comm parent = MPI_COMM_NULL;
  if (const int code = quiet_copy(like, &parent); code != MPI_SUCCESS) return code;
  const int code = create(parent, count, MPI_INFO_NULL, handles);
  inner.Comm_free(&parent);
  if (code != MPI_SUCCESS) return code;
  MPI_Errhandler handler;
  inner.Comm_get_errhandler(like, &handler);
  for (int i = 0; i < count; ++i) {
    inner.Comm_set_errhandler(handles[i], handler);
    inner.Comm_set_name(handles[i], name);
  }
  native.Errhandler_free(&handler);
  return MPI_SUCCESS;
}

/// Of the same endpoint as `mine.world`.
int make_self(Worlds& mine) {
  const int code = make_like(MPI_COMM_SELF, 1, "MPI_COMM_SELF", &mine.self);
  if (code != MPI_SUCCESS) return code;
  const Endpoint& in_world = *find(mine.world);
  find(mine.self)->communicator->identities[0] =
      in_world.communicator->identities[static_cast<std::size_t>(in_world.rank)];
  return MPI_SUCCESS;
}

/// What is made when it fails is there still.
int make_worlds(int count) {
  StaticWorld& all = static_world();
  std::vector<MPI_Comm> worlds;
  try {
    const auto wanted = static_cast<std::size_t>(std::max(count, 0));
    all.endpoints = std::make_unique<StaticEndpoint[]>(wanted);
    worlds.resize(wanted, MPI_COMM_NULL);
  } catch (const std::exception&) {
    count = -1;  // the other processes wait to hear of this one, and hear of a mistake
  }
  if (const int code = make_like(MPI_COMM_WORLD, count, "MPI_COMM_WORLD", worlds.data()); code != MPI_SUCCESS)
    return code;
  all.count = count;
  for (std::size_t i = 0; i < worlds.size(); ++i) all.endpoints[i].worlds.world = worlds[i];
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    if (const int code = make_self(all.endpoints[i].worlds); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// The first failure's code.
int free_worlds() noexcept {
  StaticWorld& all = static_world();
  int code = MPI_SUCCESS;
  for (int i = 0; i < all.count; ++i) {
    Worlds& mine = all.endpoints[static_cast<std::size_t>(i)].worlds;
    for (MPI_Comm* handle : {&mine.self, &mine.world}) {
      const int freed = *handle == MPI_COMM_NULL ? MPI_SUCCESS : free_handle(handle);
      if (code == MPI_SUCCESS) code = freed;
    }
  }
  return code;
}

bool is_thread_level(int level) noexcept {
  return level == MPI_THREAD_SINGLE || level == MPI_THREAD_FUNNELED || level == MPI_THREAD_SERIALIZED ||
         level == MPI_THREAD_MULTIPLE;
}

int raise_here(int code) noexcept { return raise_on_communicator(meaning_of(MPI_COMM_WORLD), code); }

}  // namespace

int init_endpoints(int* count_of_arguments, char*** arguments, int count, int requested, int* provided) noexcept {
  try {
    int is_initialised = 0;
    native.Initialized(&is_initialised);
    if (is_initialised != 0) return code_with_text(MPI_ERR_OTHER, init_name, "MPI is initialised already");
    int level = MPI_THREAD_SINGLE;
    const int begun = inner.Init_thread(count_of_arguments, arguments, MPI_THREAD_MULTIPLE, &level);
    if (begun != MPI_SUCCESS) return begun;
    if (provided != nullptr) *provided = level;
    // A mistake of one process is told to all: each of them is about to create.
    const int code = make_worlds(is_thread_level(requested) ? count : -1);
    if (code != MPI_SUCCESS) {
      free_worlds();
      return code;
    }
    translate_worlds();
    static_world().is_open.store(true, std::memory_order_release);
    return MPI_SUCCESS;
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

int attach(int id) noexcept {
  StaticWorld& all = static_world();
  int is_initialised = 0;
  native.Initialized(&is_initialised);
  if (is_initialised == 0) return MPI_ERR_OTHER;
  if (!all.is_open.load(std::memory_order_acquire))
    return raise_here(code_with_text(MPI_ERR_OTHER, attach_name, "MPI was not initialised by MPIX_Init_endpoints"));
  if (binding.endpoint != nullptr)
    return raise_here(code_with_text(MPI_ERR_OTHER, attach_name, "the thread is attached to an endpoint already"));
  if (id < 0 || id >= all.count)
    return raise_here(code_with_text(MPI_ERR_ARG, attach_name, "the process has no endpoint of that number"));
  StaticEndpoint& endpoint = all.endpoints[static_cast<std::size_t>(id)];
  if (endpoint.is_bound.exchange(true, std::memory_order_acquire))
    return raise_here(code_with_text(MPI_ERR_OTHER, attach_name, "another thread is attached to the endpoint"));
  binding.endpoint = &endpoint;
  set_worlds(&endpoint.worlds);
  return MPI_SUCCESS;
}

int static_endpoint_count() noexcept {
  const StaticWorld& all = static_world();
  return all.is_open.load(std::memory_order_acquire) ? 2 * all.count : 0;
}

int free_static_world() noexcept {
  if (!static_world().is_open.exchange(false, std::memory_order_acq_rel)) return MPI_SUCCESS;
  set_worlds(nullptr);
  return free_worlds();
}

}  // namespace gapless::mpi::endpoints
