// Programs that open sessions and have no world: strided data, in GPU memory too where there is a GPU, through a
// session's communicator; one session after another, several at once, and a world that comes and goes meanwhile.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/gpu.hpp"

#if MPI_VERSION >= 4
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

void pack_and_exchange(MPI_Comm communicator, MPI_Datatype type, bool on_gpu, const char* when) {
  int rank, size;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const int partner = (rank ^ 1) < size ? rank ^ 1 : rank;
  Field mine(counted(1000 * rank), on_gpu), received(std::vector<int>(blocks * stride, -1), on_gpu);

  std::vector<int> packed(blocks);
  const int bytes = blocks * static_cast<int>(sizeof(int));
  int position = 0;
  MPI_Pack(mine.address(), 1, type, packed.data(), bytes, &position, communicator);
  MPI_Sendrecv(mine.address(), 1, type, partner, 5, received.address(), 1, type, partner, 5, communicator,
               MPI_STATUS_IGNORE);
  const std::vector<int> theirs = counted(1000 * partner), got = received.values();
  bool is_packed = position == bytes, has_arrived = true;
  for (int i = 0; i < blocks * stride; ++i) {
    has_arrived = has_arrived && got[i] == (i % stride == 0 ? theirs[i] : -1);
    if (i % stride == 0) is_packed = is_packed && packed[i / stride] == 1000 * rank + i;
  }
  expect(is_packed, on_gpu ? "MPI_Pack from GPU memory" : "MPI_Pack", when);
  expect(has_arrived, on_gpu ? "MPI_Sendrecv in GPU memory" : "MPI_Sendrecv", when);
}

void use(MPI_Session session, MPI_Datatype type, const char* when) {
  MPI_Comm communicator = communicator_of(session);
  pack_and_exchange(communicator, type, false, when);
  if (gpu_fails_on_request()) pack_and_exchange(communicator, type, true, when);
  MPI_Comm_free(&communicator);
}

/// What is not served is refused in words, without a world whose handler could be called.
void refuse(MPI_Session session) {
  if (!gpu_fails_on_request()) return;
  MPI_Comm communicator = communicator_of(session);
  OnGpu memory(std::vector<std::byte>(64));
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Win window = MPI_WIN_NULL;
  const int of_communicator = MPI_Win_create(memory.at(), 64, 1, MPI_INFO_NULL, communicator, &window);
  MPI_Error_string(of_communicator, text, &length);
  expect(std::strstr(text, "MPI_Win_create") != nullptr, "an error that names MPI_Win_create", text);
  const int of_nothing = MPI_Buffer_attach(memory.at(), 64);
  MPI_Error_string(of_nothing, text, &length);
  expect(std::strstr(text, "MPI_Buffer_attach") != nullptr, "an error that names MPI_Buffer_attach", text);
  MPI_Comm_free(&communicator);
}

MPI_Session open_session() {
  MPI_Session session;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS) return session;
  std::fprintf(stderr, "this library opens no session\n");
  std::exit(1);
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

void sessions_and_world(MPI_Session session) {
  MPI_Datatype type = strided_type();
  use(session, type, "before MPI_Init");
  MPI_Init(nullptr, nullptr);
  pack_and_exchange(MPI_COMM_WORLD, type, false, "in the world");
  MPI_Session_finalize(&session);
  pack_and_exchange(MPI_COMM_WORLD, type, false, "in the world, after the sessions");
  if (gpu_fails_on_request()) pack_and_exchange(MPI_COMM_WORLD, type, true, "in the world, after the sessions");
  session = open_session();
  use(session, type, "in a session beside the world");
  MPI_Finalize();
  use(session, type, "after MPI_Finalize");
  MPI_Type_free(&type);
  MPI_Session_finalize(&session);
}

}  // namespace
}  // namespace gapless::test

int main() {
  using namespace gapless::test;
  MPI_Session session = sessions_alone();
#ifndef OPEN_MPI  // crashes when a session is opened after the last one was closed
  MPI_Session_finalize(&session);
  session = open_session();
#endif
  sessions_and_world(session);
  return failures != 0;
}
#else
int main() {}
#endif
