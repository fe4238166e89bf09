// Programs that open sessions and have no world: strided data, in GPU memory too where there is a GPU, through a
// session's communicator, by every kind of call; one session after another, several at once, a world that comes and
// goes meanwhile, with messages under way whose requests are freed, and sessions of every thread level.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/gpu.hpp"
#include "support/statistics.hpp"

#if MPI_VERSION >= 4 || defined(OPEN_MPI)
namespace gapless::test {
namespace {

int failures = 0;
void expect(bool condition, const char* what, const char* when) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s, %s\n", what, when);
  ++failures;
}

constexpr int blocks = 200, stride = 3;

/// One int in three.
MPI_Datatype strided_type() {
  MPI_Datatype type;
  MPI_Type_vector(blocks, 1, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

std::vector<int> counted(int first) {
  std::vector<int> values(blocks * stride);
  for (int& value : values) value = first++;
  return values;
}

MPI_Comm communicator_of(MPI_Session session) {
  MPI_Group group;
  MPI_Comm communicator;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "gapless.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &communicator);
  MPI_Group_free(&group);
  return communicator;
}

/// Memory of the kind under test, filled with `values`.
class Field {
 public:
  Field(std::vector<int> values, bool on_gpu) : host_(std::move(values)) {
    if (on_gpu) gpu_ = new OnGpu(bytes_of(host_));
  }
  ~Field() { delete gpu_; }
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  void* address() { return gpu_ ? gpu_->at() : host_.data(); }
  std::vector<int> values() const {
    std::vector<int> result = host_;
    if (gpu_) std::memcpy(result.data(), gpu_->bytes().data(), result.size() * sizeof(int));
    return result;
  }

 private:
  static std::vector<std::byte> bytes_of(const std::vector<int>& values) {
    const auto* first = reinterpret_cast<const std::byte*>(values.data());
    return {first, first + values.size() * sizeof(int)};
  }
  std::vector<int> host_;
  OnGpu* gpu_ = nullptr;
};

int partner_in(MPI_Comm communicator) {
  const int rank = test::rank(communicator);
  return (rank ^ 1) < size(communicator) ? rank ^ 1 : rank;
}

/// Is that what one strided type brings into a buffer of -1, from one that `counted(first)` filled?
bool has_arrived(const std::vector<int>& got, int first) {
  const std::vector<int> theirs = counted(first);
  for (int i = 0; i < blocks * stride; ++i) {
    if (got[i] != (i % stride == 0 ? theirs[i] : -1)) return false;
  }
  return true;
}

void pack_and_exchange(MPI_Comm communicator, MPI_Datatype type, bool on_gpu, const char* when) {
  const int rank = test::rank(communicator), partner = partner_in(communicator);
  Field mine(counted(1000 * rank), on_gpu), received(std::vector<int>(blocks * stride, -1), on_gpu);

  std::vector<int> packed(blocks);
  const int bytes = blocks * static_cast<int>(sizeof(int));
  int position = 0;
  MPI_Pack(mine.address(), 1, type, packed.data(), bytes, &position, communicator);
  MPI_Sendrecv(mine.address(), 1, type, partner, 5, received.address(), 1, type, partner, 5, communicator,
               MPI_STATUS_IGNORE);
  bool is_packed = position == bytes;
  for (int i = 0; i < blocks; ++i) is_packed = is_packed && packed[i] == 1000 * rank + i * stride;
  expect(is_packed, on_gpu ? "MPI_Pack from GPU memory" : "MPI_Pack", when);
  expect(has_arrived(received.values(), 1000 * partner), on_gpu ? "MPI_Sendrecv in GPU memory" : "MPI_Sendrecv", when);
}

/// Requests that are made once and started twice, or made each time.
void exchange_by_requests(MPI_Comm communicator, MPI_Datatype type, bool on_gpu, bool is_persistent, const char* when) {
  const int rank = test::rank(communicator), partner = partner_in(communicator);
  Field mine(counted(1000 * rank), on_gpu), received(std::vector<int>(blocks * stride, -1), on_gpu);
  MPI_Request requests[2];
  if (is_persistent) {
    MPI_Send_init(mine.address(), 1, type, partner, 6, communicator, &requests[0]);
    MPI_Recv_init(received.address(), 1, type, partner, 6, communicator, &requests[1]);
  }
  for (int round = 0; round < 2; ++round) {
    if (is_persistent) {
      MPI_Startall(2, requests);
    } else {
      MPI_Irecv(received.address(), 1, type, partner, 6, communicator, &requests[1]);
      MPI_Isend(mine.address(), 1, type, partner, 6, communicator, &requests[0]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(has_arrived(received.values(), 1000 * partner), is_persistent ? "MPI_Startall" : "MPI_Isend and MPI_Irecv",
           when);
  }
  for (MPI_Request& request : requests) {
    if (is_persistent) MPI_Request_free(&request);
  }
}

void collectives(MPI_Comm communicator, MPI_Datatype type, bool on_gpu, const char* when) {
  const int rank = test::rank(communicator), size = test::size(communicator);
  const std::vector<int> empty(blocks * stride, -1);
  for (const bool returns_early : {false, true}) {
    Field field(rank == 0 ? counted(5) : empty, on_gpu);
    if (returns_early) {
      MPI_Request request;
      MPI_Ibcast(field.address(), 1, type, 0, communicator, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Bcast(field.address(), 1, type, 0, communicator);
    }
    expect(rank == 0 || has_arrived(field.values(), 5), returns_early ? "MPI_Ibcast" : "MPI_Bcast", when);
  }
  // All parts are the same, so that where a process's own lies does not matter.
  Field mine(counted(1000 * rank), on_gpu), received(std::vector<int>(blocks * stride * size, -1), on_gpu);
  const std::vector<int> ones(size, 1), at_start(size, 0);
  std::vector<int> places(size);
  for (int i = 0; i < size; ++i) places[i] = i * static_cast<int>(sizeof(int)) * blocks * stride;
  const std::vector<MPI_Datatype> types(size, type);
  MPI_Alltoallw(mine.address(), ones.data(), at_start.data(), types.data(), received.address(), ones.data(),
                places.data(), types.data(), communicator);
  const std::vector<int> got = received.values();
  for (int i = 0; i < size; ++i) {
    const auto part = got.begin() + i * blocks * stride;
    expect(has_arrived({part, part + blocks * stride}, 1000 * i), "MPI_Alltoallw", when);
  }
}

/// Every kind of call, from memory of one kind.
void use_all(MPI_Comm communicator, MPI_Datatype type, bool on_gpu, const char* when) {
  pack_and_exchange(communicator, type, on_gpu, when);
  const std::uint64_t packed_before = packed_messages();
  exchange_by_requests(communicator, type, on_gpu, false, when);
  exchange_by_requests(communicator, type, on_gpu, true, when);
  // Two sends and two receives, of either kind.
  if (is_everything_packed() && !on_gpu)
    expect(packed_messages() == packed_before + 8, "messages that are packed", when);
  collectives(communicator, type, on_gpu, when);
}

void use(MPI_Session session, MPI_Datatype type, const char* when) {
  MPI_Comm communicator = communicator_of(session);
  use_all(communicator, type, false, when);
  if (gpu_fails_on_request()) use_all(communicator, type, true, when);
  MPI_Comm_free(&communicator);
}

/// Handles of endpoints are made in a world.
void refuse_endpoints(MPI_Session session) {
  using Create = int (*)(MPI_Comm, int, MPI_Info, MPI_Comm*);
  const auto create = reinterpret_cast<Create>(dlsym(RTLD_DEFAULT, "MPIX_Comm_create_endpoints"));
  if (create == nullptr) return;  // without gapless
  MPI_Comm communicator = communicator_of(session), handle = MPI_COMM_NULL;
  int error_class = MPI_SUCCESS;
  MPI_Error_class(create(communicator, 1, MPI_INFO_NULL, &handle), &error_class);
  expect(error_class == MPI_ERR_OTHER, "no endpoints", "in a session alone");
  MPI_Comm_free(&communicator);
}

/// What is not served is refused in words, without a world whose handler could be called.
void refuse(MPI_Session session) {
  refuse_endpoints(session);
  if (!gpu_fails_on_request()) return;
  MPI_Comm communicator = communicator_of(session);
  OnGpu memory(std::vector<std::byte>(64));
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Win window = MPI_WIN_NULL;
  const int of_communicator = MPI_Win_create(memory.at(), 64, 1, MPI_INFO_NULL, communicator, &window);
  MPI_Error_string(of_communicator, text, &length);
  expect(std::strstr(text, "MPI_Win_create") != nullptr, "an error that names MPI_Win_create", text);
  fail_next("run");
  char packed[64];
  MPI_Aint position = 0;
  const int of_nothing = MPI_Pack_external("external32", memory.at(), 8, MPI_INT, packed, sizeof packed, &position);
  MPI_Error_string(of_nothing, text, &length);
  expect(std::strstr(text, "MPI_Pack_external") != nullptr, "an error that names MPI_Pack_external", text);
  MPI_Comm_free(&communicator);
}

/// With the level that the library is asked for: without one MPICH 5.0.2 takes any (session_impl.c initialises none).
MPI_Session open_session(const char* level = "MPI_THREAD_MULTIPLE") {
  MPI_Session session;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", level);
  const int code = MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
  MPI_Info_free(&info);
  if (code == MPI_SUCCESS) return session;
  std::fprintf(stderr, "this library opens no session\n");
  std::exit(1);
}

std::string level_of(MPI_Session session) {
  MPI_Info info;
  char level[64] = "";
  int length = sizeof level, is_there = 0;
  MPI_Session_get_info(session, &info);
  MPI_Info_get_string(info, "thread_level", &length, level, &is_there);
  MPI_Info_free(&info);
  return level;
}

/// Threads that each send and receive by requests and types of their own, all through one communicator.
void use_in_threads(MPI_Session session, const char* when) {
  constexpr int threads = 4, rounds = 300;
  MPI_Comm communicator = communicator_of(session);
  const int rank = test::rank(communicator), partner = partner_in(communicator);
  std::atomic<int> wrong = 0;
  const auto work = [&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      MPI_Datatype type = strided_type();
      std::vector<int> mine = counted(1000 * rank + 10 * thread + round), received(blocks * stride, -1);
      MPI_Request requests[2];
      MPI_Irecv(received.data(), 1, type, partner, thread, communicator, &requests[0]);
      MPI_Isend(mine.data(), 1, type, partner, thread, communicator, &requests[1]);
      MPI_Type_free(&type);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      wrong += !has_arrived(received, 1000 * partner + 10 * thread + round);
    }
  };
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) all.emplace_back(work, thread);
  for (std::thread& thread : all) thread.join();
  expect(wrong == 0, "messages of several threads", when);
  MPI_Comm_free(&communicator);
}

/// Sessions of every level, one at a time. In MPICH a world that is there has decided on the level before.
void sessions_of_every_level(bool is_world_there) {
  for (const char* asked :
       {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"}) {
    MPI_Session session = open_session(asked);
    const std::string level = level_of(session);
#ifndef OPEN_MPI
    if (!is_world_there)
#endif
      expect(level == asked, asked, is_world_there ? "beside a world of one thread" : "without a world");
    MPI_Datatype type = strided_type();
    use(session, type, level.c_str());
    MPI_Type_free(&type);
    if (level == "MPI_THREAD_MULTIPLE") use_in_threads(session, level.c_str());
    MPI_Session_finalize(&session);
  }
}

/// Returns a session that is still open.
MPI_Session sessions_alone() {
  MPI_Session first = open_session();
  MPI_Datatype type = strided_type();
  use(first, type, "in the first session");
  MPI_Session second = open_session();
  use(second, type, "in a second session");
  MPI_Session_finalize(&first);
  use(second, type, "after the first session");
  refuse(second);
  MPI_Type_free(&type);
  return second;
}

/// A long message each way whose requests are freed, and in which the partner takes part later.
class FreedMessages {
 public:
  explicit FreedMessages(MPI_Comm communicator) : communicator_(communicator), partner_(partner_in(communicator)) {
    MPI_Type_vector(ints / stride, 1, stride, MPI_INT, &type_);
    MPI_Type_commit(&type_);
    for (std::size_t i = 0; i < sent_.size(); ++i) sent_[i] = static_cast<int>(i);
    MPI_Request request;
    MPI_Isend(sent_.data(), 1, type_, partner_, 5, communicator_, &request);
    MPI_Request_free(&request);
    MPI_Irecv(late_.data(), 1, type_, partner_, 6, communicator_, &request);
    MPI_Request_free(&request);
  }
  /// While MPI can be called.
  void free_type() { MPI_Type_free(&type_); }

  void answer(const char* when) {
    MPI_Recv(received_.data(), 1, type_, partner_, 5, communicator_, MPI_STATUS_IGNORE);
    MPI_Send(sent_.data(), 1, type_, partner_, 6, communicator_);
    expect(is_right(received_), "a message whose send was freed", when);
  }
  /// After the communicator is disconnected or its world is over: nothing else tells that a freed receive has ended.
  void check_late(const char* when) const { expect(is_right(late_), "a message whose receive was freed", when); }

 private:
  static constexpr std::size_t ints = 60000;

  bool is_right(const std::vector<int>& memory) const {
    for (std::size_t i = 0; i < ints; ++i) {
      if (memory[i] != (i % stride == 0 ? sent_[i] : -1)) return false;
    }
    return true;
  }

  MPI_Comm communicator_;
  int partner_;
  MPI_Datatype type_;
  std::vector<int> sent_ = std::vector<int>(ints), received_ = std::vector<int>(ints, -1), late_ = received_;
};

void sessions_and_world(MPI_Session session) {
  MPI_Datatype type = strided_type();
  use(session, type, "before MPI_Init");
  refuse(session);
  MPI_Init(nullptr, nullptr);
  pack_and_exchange(MPI_COMM_WORLD, type, false, "in the world");
  FreedMessages of_world(MPI_COMM_WORLD);
  MPI_Session_finalize(&session);
  of_world.answer("in the world, as the sessions ended");
  exchange_by_requests(MPI_COMM_WORLD, type, false, false, "in the world");  // completes what was freed, too
  use_all(MPI_COMM_WORLD, type, false, "in the world, after the sessions");
  if (gpu_fails_on_request()) use_all(MPI_COMM_WORLD, type, true, "in the world, after the sessions");
  sessions_of_every_level(true);
  session = open_session();
  use(session, type, "in a session beside the world");
  MPI_Comm communicator = communicator_of(session);
  FreedMessages of_session(communicator);
  MPI_Finalize();
  of_world.check_late("in the world, as the sessions ended");
  of_session.answer("in a session, as the world ended");
  MPI_Comm_disconnect(&communicator);
  of_session.check_late("in a session, as the world ended");
  use(session, type, "after MPI_Finalize");
  of_world.free_type();
  of_session.free_type();
  MPI_Type_free(&type);
  MPI_Session_finalize(&session);
}

}  // namespace
}  // namespace gapless::test

int main() {
  using namespace gapless::test;
  MPI_Session session = sessions_alone();
#ifdef OPEN_MPI  // crashes when a session is opened after the last one was closed
  sessions_of_every_level(false);
#else
  MPI_Session_finalize(&session);
  sessions_of_every_level(false);
  session = open_session();
#endif
  sessions_and_world(session);
  const Leftovers left = leftovers();
  expect(left.requests + left.buffers + left.registrations == 0, "nothing that is left", "at the end");
  return failures != 0;
}
#else
int main() {}
#endif
