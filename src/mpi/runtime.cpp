// Start and end of the layer inside a running MPI library.
#include "mpi/runtime.hpp"

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>

#include "mpi/entry_points.hpp"
#include "mpi/native.hpp"
#include "mpi/type_cache.hpp"
#include "transfer/buffers.hpp"
#include "transfer/statistics.hpp"

namespace gapless::mpi::runtime {
namespace {

enum class State { waiting, working, ended };
std::atomic<State> state{State::waiting};
std::mutex start_mutex;

MPI_Comm private_communicator;  ///< of this process alone; errors are returned
int type_keyval_;
int end_keyval;

void print_statistics() noexcept {
  try {
    int rank = -1;
    native.Comm_rank(MPI_COMM_WORLD, &rank);
    std::fprintf(stderr, "gapless: rank %d: %s\n", rank, transfer::summary().c_str());
  } catch (const std::exception&) {
  }
}

int end(MPI_Comm, int, void*, void*) {
  if (state.exchange(State::ended) != State::working) return MPI_SUCCESS;
  if (transfer::statistics_wanted()) print_statistics();
  type_cache::clear_table();
  native.Comm_free(&private_communicator);
  native.Type_free_keyval(&type_keyval_);
  native.Comm_free_keyval(&end_keyval);
  transfer::drain_pools();
  return MPI_SUCCESS;
}

int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

bool set_up() noexcept {
  int initialized = 0, finalized = 0;
  native.Initialized(&initialized);
  native.Finalized(&finalized);
  if (initialized == 0 || finalized != 0) return false;
  if (native.Comm_dup(MPI_COMM_SELF, &private_communicator) != MPI_SUCCESS) return false;
  native.Comm_set_errhandler(private_communicator, MPI_ERRORS_RETURN);
  const bool ready =
      native.Type_create_keyval(type_cache::copy_nothing, type_cache::forget, &type_keyval_, nullptr) == MPI_SUCCESS &&
      native.Comm_create_keyval(copy_nothing, end, &end_keyval, nullptr) == MPI_SUCCESS &&
      native.Comm_set_attr(MPI_COMM_SELF, end_keyval, nullptr) == MPI_SUCCESS;
  return ready;
}

}  // namespace

bool start() noexcept {
  switch (state.load(std::memory_order_acquire)) {
    case State::working:
      return true;
    case State::ended:
      return false;
    case State::waiting:
      break;
  }
  const std::lock_guard lock(start_mutex);
  if (state.load(std::memory_order_relaxed) == State::waiting && set_up()) {
    state.store(State::working, std::memory_order_release);
  }
  return state.load(std::memory_order_relaxed) == State::working;
}

int type_keyval() noexcept { return type_keyval_; }

bool is_usable(MPI_Datatype handle) noexcept {
  // Packing nothing is the cheapest operation that checks the datatype, and it checks what a message would.
  char nothing[8] = {};
  int position = 0;
  return native.Pack(nothing, 0, handle, nothing, sizeof nothing, &position, private_communicator) == MPI_SUCCESS;
}

bool library_reads_gpu_memory() noexcept {
  static const bool answer = native.query_cuda_support != nullptr && native.query_cuda_support() == 1;
  return answer;
}

namespace {

// Set up inside MPI_Init, on the thread that calls it: later, duplicating MPI_COMM_SELF could meet a collective of the
// program on it.
int initialize(int* count, char*** arguments) {
  const int code = native.Init(count, arguments);
  if (code == MPI_SUCCESS) static_cast<void>(start());
  return code;
}

int initialize_thread(int* count, char*** arguments, int required, int* provided) {
  const int code = native.Init_thread(count, arguments, required, provided);
  if (code == MPI_SUCCESS) static_cast<void>(start());
  return code;
}

int finalize() { return native.Finalize(); }

#if GAPLESS_DECLARED_Session_init
int session_initialize(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  return native.Session_init(info, handler, session);
}
int session_finalize(MPI_Session* session) { return native.Session_finalize(session); }
#endif

}  // namespace
}  // namespace gapless::mpi::runtime

namespace gapless::mpi::entry {

const decltype(Native::Init) Init = runtime::initialize;
const decltype(Native::Init_thread) Init_thread = runtime::initialize_thread;
const decltype(Native::Finalize) Finalize = runtime::finalize;
#if GAPLESS_DECLARED_Session_init
const decltype(Native::Session_init) Session_init = runtime::session_initialize;
const decltype(Native::Session_finalize) Session_finalize = runtime::session_finalize;
#endif

}  // namespace gapless::mpi::entry
