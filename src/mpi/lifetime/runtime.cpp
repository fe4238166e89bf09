// Start and end of the layer inside a running MPI library.
#include "mpi/lifetime/runtime.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/settings.hpp"
#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/calls/files/split_access.hpp"
#include "mpi/calls/one_sided/one_sided.hpp"
#include "mpi/calls/sides/packed_type.hpp"
#include "mpi/calls/staged/byte_types.hpp"
#include "mpi/datatypes/early_uses.hpp"
#include "mpi/datatypes/type_cache.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/own_attribute.hpp"
#include "mpi/lifetime/session.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/outstanding.hpp"
#include "mpi/requests/receives/looked_at.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/native.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/message.hpp"
#include "transfer/rdma/rendezvous/service.hpp"
#include "transfer/report/report.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::mpi::runtime {

constinit std::atomic<bool> internal::multithreaded{true};

namespace {

constexpr int progress_tag = 32767;  // of no message on the private communicator

// What the private communicator was made from.
enum class Model { world, sessions };

std::mutex mutex;  ///< set-up and end, and all below; readers of the private handles know that `working` is set
std::atomic<bool> working{false};
std::atomic<bool> alone{false};
Model model;
bool world_ended = false;       ///< MPI_Finalize has begun
int open_sessions = 0;          ///< the program's
MPI_Comm private_communicator;  ///< of this process alone; errors are returned
int type_keyval_;
int end_keyval;

// Does this thread set up or end? What the library asks of itself meanwhile goes straight to it.
constinit thread_local bool changing [[gnu::tls_model("initial-exec")]] = false;

class Change {
 public:
  Change() : lock_(mutex) { changing = true; }
  ~Change() { changing = false; }

 private:
  std::lock_guard<std::mutex> lock_;
};

struct PlaceInWorld {
  int rank = -1;
  int ranks = -1;
};
PlaceInWorld place_in_world() noexcept {
  PlaceInWorld place;
  if (model != Model::world) {
    session::find_place(place.rank, place.ranks);
  } else {
    native.Comm_rank(MPI_COMM_WORLD, &place.rank);
    native.Comm_size(MPI_COMM_WORLD, &place.ranks);
  }
  return place;
}

void print_statistics() noexcept {
  try {
    std::fprintf(stderr, "gapless: rank %d: %s\n", place_in_world().rank, transfer::summary().c_str());
  } catch (const std::exception&) {
  }
}

/// Precondition: within a Change, and no call of the program is under way.
void end() noexcept {
  if (!working.exchange(false)) return;
  transfer::drain_pools();
  transfer::record_leftovers({requests::how_many() + one_sided::how_many() + split_access::how_many(),
                              transfer::existing_buffers(), transfer::rdma::held_registrations()});
  if (transfer::statistics_wanted()) print_statistics();
  if (transfer::report_wanted()) {
    const PlaceInWorld place = place_in_world();
    transfer::write_report(place.rank, place.ranks, library_version().data());
  }
  type_cache::clear_table();
  early_uses::clear_table();
  free_split_types();
  free_byte_types();
  native.Type_free_keyval(&type_keyval_);
  by_messages::end();
  forget_error_codes();
  if (model == Model::world) {
    headers::end();
    native.Comm_free(&private_communicator);
    native.Comm_free_keyval(&end_keyval);
  } else {
    session::close(private_communicator);
  }
}

bool has_open_sessions() noexcept {
  const std::lock_guard lock(mutex);
  return open_sessions > 0;
}

/// What is under way ends, as far as it needs this process.
void leave_world() noexcept {
  requests::start_deferred();
  // What the program has freed may be of a session that stays open, where a peer may take part in it only after this
  // call. What is left then is completed in later calls.
  if (has_open_sessions()) {
    requests::complete_freed();
  } else {
    requests::end_all();
  }
  headers::finish();
}

/// MPI_Finalize calls it behind the program's own callbacks, which may communicate: MPI_Init has set this attribute
/// first (MPI 5.0, 11.2.4).
int end_with_world(MPI_Comm, int, void*, void*) {
  leave_world();
  const Change change;
  world_ended = true;
  end();
  return MPI_SUCCESS;
}

bool has_world() noexcept {
  int initialized = 0, finalized = 0;
  native.Initialized(&initialized);
  native.Finalized(&finalized);
  return initialized != 0 && finalized == 0 && !world_ended;
}

bool start_in_world() noexcept {
  model = Model::world;
  int level = MPI_THREAD_MULTIPLE;
  native.Query_thread(&level);
  internal::multithreaded.store(level == MPI_THREAD_MULTIPLE || open_sessions > 0, std::memory_order_relaxed);
  int size = 0;
  native.Comm_size(MPI_COMM_WORLD, &size);
  alone.store(size == 1, std::memory_order_relaxed);
  // Not a duplicate, for which the program's attribute callbacks would be called.
  if (native.Comm_split(MPI_COMM_SELF, 0, 0, &private_communicator) != MPI_SUCCESS) return false;
  native.Comm_set_errhandler(private_communicator, MPI_ERRORS_RETURN);
  return make_keyval(end_with_world, end_keyval) &&
         native.Comm_set_attr(MPI_COMM_SELF, end_keyval, nullptr) == MPI_SUCCESS;
}

bool start_in_sessions() noexcept {
  model = Model::sessions;
  internal::multithreaded.store(true, std::memory_order_relaxed);  // each session may be of another level
  return open_sessions > 0 && session::open(private_communicator);
}

/// The delete callback of the attribute that a datatype's record is.
int end_datatype(MPI_Datatype handle, int keyval, void* record, void* extra_state) {
  requests::looked_at::outlive(handle, *static_cast<const TypeRecord*>(record));
  return type_cache::forget(handle, keyval, record, extra_state);
}

bool set_up() noexcept {
  if (has_world() ? !start_in_world() : !start_in_sessions()) return false;
  return native.Type_create_keyval(copy_nothing<MPI_Datatype>, end_datatype, &type_keyval_, nullptr) == MPI_SUCCESS;
}

}  // namespace

bool start() noexcept {
  if (working.load(std::memory_order_acquire)) return true;
  if (changing) return false;
  const Change change;
  if (!working.load(std::memory_order_relaxed) && set_up()) working.store(true, std::memory_order_release);
  return working.load(std::memory_order_relaxed);
}

bool is_alone() noexcept { return alone.load(std::memory_order_relaxed); }

MPI_Comm own_communicator() noexcept { return private_communicator; }

void make_progress() noexcept {
  // A test of what is not complete makes both libraries do what they can. Not so a probe: MPICH 5.0.2 looks only at
  // what is there already where the communicator is of one process.
  MPI_Request nothing = MPI_REQUEST_NULL;
  int is_complete = 0;
  if (native.Irecv(nullptr, 0, MPI_BYTE, 0, progress_tag, private_communicator, &nothing) != MPI_SUCCESS) return;
  native.Test(&nothing, &is_complete, MPI_STATUS_IGNORE);
  native.Cancel(&nothing);
  native.Wait(&nothing, MPI_STATUS_IGNORE);
}

int type_keyval() noexcept { return type_keyval_; }

bool is_usable(MPI_Datatype handle) noexcept {
  // Packing nothing is the cheapest operation that checks the datatype, and it checks what a message would.
  char nothing[8] = {};
  int position = 0;
  return native.Pack(nothing, 0, handle, nothing, sizeof nothing, &position, private_communicator) == MPI_SUCCESS;
}

MPI_Count size_of(MPI_Datatype handle) noexcept {
  if constexpr (is_open_mpi) {
    // Checks no more of a handle than that it is one, in any of its functions, and raises that on MPI_COMM_WORLD.
    MPI_Count bytes = 0;
    return handle != MPI_DATATYPE_NULL && native.Type_size_x(handle, &bytes) == MPI_SUCCESS ? bytes : -1;
  }
  // Raises an error on the communicator, where Type_size would on one of the program's.
#if GAPLESS_DECLARED_Pack_size_c
  MPI_Count large = 0;
  if (native.Pack_size_c != nullptr) {
    return native.Pack_size_c(1, handle, private_communicator, &large) == MPI_SUCCESS ? large : -1;
  }
#endif
  int bytes = 0;
  MPI_Count size = 0;
  if (native.Pack_size(1, handle, private_communicator, &bytes) != MPI_SUCCESS) return -1;
  return native.Type_size_x(handle, &size) == MPI_SUCCESS ? size : -1;  // 2 GiB and more, too
}

MPI_Comm communicator_for_errors() noexcept {
  const std::lock_guard lock(mutex);
  if (!has_world()) return private_communicator;
    // MPI 4 moved these errors from MPI_COMM_WORLD's handler to MPI_COMM_SELF's.
#if MPI_VERSION >= 4
  return MPI_COMM_SELF;
#else
  return MPI_COMM_WORLD;
#endif
}

namespace {

/// The library's own word. A message to itself would prove it, or end the program.
bool library_says_it_reads_gpu_memory() noexcept {
  if (native.query_cuda_support != nullptr) return native.query_cuda_support() == 1;
  constexpr int cuda = 0;  // MPIX_GPU_SUPPORT_CUDA of MPICH and its kin
  int is_supported = 0;
  return native.query_gpu_support != nullptr && native.query_gpu_support(cuda, &is_supported) == MPI_SUCCESS &&
         is_supported == 1;
}

}  // namespace

bool library_reads_gpu_memory() noexcept {
  static const bool answer = [] {
    const std::string_view wanted = settings().gpu_aware;
    const bool reads = wanted == "1" || (wanted != "0" && library_says_it_reads_gpu_memory());
    transfer::set_library_reads_gpu_memory(reads);
    return reads;
  }();
  return answer;
}

std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> library_version() noexcept {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  native.Get_library_version(text.data(), &length);
  return text;
}

namespace {

// Set up inside MPI_Init, on the thread that calls it: later, splitting MPI_COMM_SELF could meet a collective of the
// program on it.
int initialize(int* count, char*** arguments) {
  const int code = native.Init(count, arguments);
  return code == MPI_SUCCESS ? headers::start(start()) : code;
}

int initialize_thread(int* count, char*** arguments, int required, int* provided) {
  const int code = native.Init_thread(count, arguments, required, provided);
  return code == MPI_SUCCESS ? headers::start(start()) : code;
}

int finalize() {
  const int code = native.Finalize();
  transfer::rdma::stop();
  return code;
}

#if GAPLESS_DECLARED_Session_init
int session_initialize(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  requests::start_deferred();
  const int code = native.Session_init(info, handler, session);
  if (code == MPI_SUCCESS) {
    const std::lock_guard lock(mutex);
    ++open_sessions;
    // The session's threads may call beside the world's, whatever the levels of both are.
    internal::multithreaded.store(true, std::memory_order_relaxed);
  }
  return code;
}

int session_finalize(MPI_Session* session) {
  requests::start_deferred();
  {
    const Change change;
    if (--open_sessions == 0 && model == Model::sessions) {
      // A world that is there keeps what the program has freed: a peer may take part in it only after this call.
      if (!has_world()) requests::end_all();
      end();
    }
  }
  const int code = native.Session_finalize(session);
  if (code != MPI_SUCCESS) {
    const std::lock_guard lock(mutex);
    ++open_sessions;
  }
  static_cast<void>(start());  // a world may be left
  return code;
}
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
