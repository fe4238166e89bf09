// What a program is told when it makes a mistake: the error class the library itself would give, once, through the
// handler of the communicator.

#include <gtest/gtest.h>
#include <mpi.h>

#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

class Errors : public testing::Test {
 protected:
  ReturnErrors world_{MPI_COMM_WORLD};
  ReturnErrors self_{MPI_COMM_SELF};
  Owned type_{strided(4, 2, 3)};
  std::vector<int> memory_ = std::vector<int>(12, 3);

  int send(void* memory, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator) {
    return error_class(MPI_Send(memory, count, type, to, tag, communicator));
  }
  int receive(void* memory, int count, MPI_Datatype type, int from, int tag, MPI_Comm communicator) {
    return error_class(MPI_Recv(memory, count, type, from, tag, communicator, MPI_STATUS_IGNORE));
  }
};

TEST_F(Errors, InvalidArgumentsOfASend) {
  EXPECT_EQ(MPI_ERR_RANK, send(memory_.data(), 1, type_, size(), 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_RANK, send(memory_.data(), 1, type_, -77, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_TAG, send(memory_.data(), 1, type_, 0, -77, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_COUNT, send(memory_.data(), -1, type_, 0, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_TYPE, send(memory_.data(), 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_COMM, send(memory_.data(), 1, type_, 0, 0, MPI_COMM_NULL));
}

TEST_F(Errors, InvalidArgumentsOfAReceive) {
  EXPECT_EQ(MPI_ERR_RANK, receive(memory_.data(), 1, type_, size(), 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_TAG, receive(memory_.data(), 1, type_, 0, -77, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_COUNT, receive(memory_.data(), -1, type_, 0, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_TYPE, receive(memory_.data(), 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_COMM, receive(memory_.data(), 1, type_, 0, 0, MPI_COMM_NULL));
  EXPECT_EQ(std::vector<int>(12, 3), memory_);
}

TEST_F(Errors, InvalidArgumentsOfSendrecv) {
  const auto call = [this](int count, MPI_Datatype type, int to) {
    return error_class(MPI_Sendrecv(memory_.data(), count, type, to, 0, memory_.data(), 0, MPI_INT, MPI_PROC_NULL, 0,
                                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  };
  EXPECT_EQ(MPI_ERR_COUNT, call(-1, type_, 0));
  EXPECT_EQ(MPI_ERR_TYPE, call(1, MPI_DATATYPE_NULL, 0));
  EXPECT_EQ(MPI_ERR_RANK, call(1, type_, size()));
}

#if !defined(OPEN_MPI) && !defined(MPI_ABI)  // handles that are addresses say nothing of their kind
TEST_F(Errors, AHandleThatIsNoCommunicator) {
  const MPI_Comm strange = MPI_INT;
  std::vector<char> packed(64);
  int position = 0;
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Pack(memory_.data(), 1, type_, packed.data(), 64, &position, strange)));
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Unpack(packed.data(), 64, &position, memory_.data(), 1, type_, strange)));
  EXPECT_EQ(0, position);
  EXPECT_EQ(std::vector<char>(64), packed);
}
#endif

/// A handle of nothing but zero bits, given by a thread that has not packed before.
TEST_F(Errors, AHandleThatWasNeverSet) {
  const MPI_Comm unset{};
  std::vector<char> packed(64);
  int position = 0, of_pack = MPI_SUCCESS, of_unpack = MPI_SUCCESS;
  std::thread([&] {
    of_pack = MPI_Pack(memory_.data(), 1, type_, packed.data(), 64, &position, unset);
    of_unpack = MPI_Unpack(packed.data(), 64, &position, memory_.data(), 1, type_, unset);
  }).join();
  EXPECT_EQ(MPI_ERR_COMM, error_class(of_pack));
  EXPECT_EQ(MPI_ERR_COMM, error_class(of_unpack));
  EXPECT_EQ(0, position);
  EXPECT_EQ(std::vector<char>(64), packed);
}

TEST_F(Errors, UncommittedTypes) {
  MPI_Datatype uncommitted;
  MPI_Type_vector(4, 2, 3, MPI_INT, &uncommitted);
  EXPECT_EQ(MPI_ERR_TYPE, send(memory_.data(), 1, uncommitted, 0, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_ERR_TYPE, receive(memory_.data(), 1, uncommitted, 0, 0, MPI_COMM_WORLD));
  // ... and committed later, it is as good as any.
  MPI_Type_commit(&uncommitted);
  std::vector<int> packed(8, -1);
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(memory_.data(), 1, uncommitted, packed.data(), 32, &position, MPI_COMM_WORLD));
  EXPECT_EQ(std::vector<int>(8, 3), packed);
  MPI_Type_free(&uncommitted);
}

TEST_F(Errors, PackRefusesWhatTheLibraryRefuses) {
  std::vector<int> packed(16, -1);
  int position = 0;
  EXPECT_EQ(MPI_ERR_TYPE,
            error_class(MPI_Pack(memory_.data(), 1, MPI_DATATYPE_NULL, packed.data(), 32, &position, MPI_COMM_WORLD)));
  EXPECT_EQ(MPI_ERR_COUNT,
            error_class(MPI_Pack(memory_.data(), -1, type_, packed.data(), 32, &position, MPI_COMM_WORLD)));
#ifdef OPEN_MPI  // MPICH does not look at the size, and writes past the buffer's end
  position = 4;
  EXPECT_NE(MPI_SUCCESS, MPI_Pack(memory_.data(), 1, type_, packed.data(), 32, &position, MPI_COMM_WORLD));
#endif
  position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(memory_.data(), 1, type_, packed.data(), 32, &position, MPI_COMM_WORLD));
  EXPECT_EQ(32, position);
}

int truncated_receive(bool strided_receiver) {
  const Owned sent(strided(20, 2, 3));
  const Owned received(strided(10, 2, 3));
  std::vector<int> source = counting(60);
  std::vector<int> destination(60, -1);
  const int me = rank();
  MPI_Request request;
  MPI_Isend(source.data(), 1, sent, me, 8, MPI_COMM_WORLD, &request);
  const int code = strided_receiver
                       ? MPI_Recv(destination.data(), 1, received, me, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                       : MPI_Recv(destination.data(), 20, MPI_INT, me, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(std::vector<int>(30, -1), std::vector<int>(destination.begin() + 30, destination.end()));
  return error_class(code);
}

TEST_F(Errors, MessagesThatAreTooLongAreTruncated) {
  EXPECT_EQ(MPI_ERR_TRUNCATE, truncated_receive(true));
  EXPECT_EQ(MPI_ERR_TRUNCATE, truncated_receive(false));
}

int handler_calls = 0;
int handler_class = MPI_SUCCESS;
MPI_Comm handler_communicator = MPI_COMM_NULL;
void count_errors(MPI_Comm* communicator, int* code, ...) {
  ++handler_calls;
  handler_class = error_class(*code);
  handler_communicator = *communicator;
}

TEST(ErrorHandlers, AreCalledOncePerErrorForTheRightCommunicator) {
  const Owned type(strided(4, 2, 3));
  std::vector<int> memory(12, 3);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(count_errors, &handler);
  MPI_Comm_set_errhandler(own, handler);

  handler_calls = 0;
  // What such a call returns is the library's affair: MPICH says MPI_SUCCESS once the handler has returned.
  MPI_Send(memory.data(), 1, type, size(), 0, own);
  EXPECT_EQ(1, handler_calls);
  EXPECT_EQ(MPI_ERR_RANK, handler_class);
  EXPECT_EQ(own, handler_communicator);

  const Owned half(strided(2, 2, 3));
  MPI_Request request;
  std::vector<int> source(12, 5);
  MPI_Isend(source.data(), 1, type, rank(), 8, own, &request);
  MPI_Recv(memory.data(), 1, half, rank(), 8, own, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(2, handler_calls);
  EXPECT_EQ(MPI_ERR_TRUNCATE, handler_class);

  int position = 0;
  std::vector<int> packed(8);
  MPI_Pack(memory.data(), -1, type, packed.data(), 32, &position, own);
  EXPECT_EQ(3, handler_calls);
  EXPECT_EQ(MPI_ERR_COUNT, handler_class);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&own);
}

}  // namespace
}  // namespace gapless::test
