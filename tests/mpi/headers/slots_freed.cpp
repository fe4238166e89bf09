// Delete callbacks of a program may still send and receive on the communicator that is freed, before or after gapless
// has heard that it ends. The next communicator may be given the same handle.

#include <gtest/gtest.h>
#include <mpi.h>

#include <csetjmp>
#include <cstddef>
#include <vector>

#include "headers/slot_messages.hpp"
#include "support/environment.hpp"
#include "support/jumps.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

constexpr int blocks = 1000, late_tag = 11;

/// A message to the next rank, and one from the one before, which says by its first int who has sent it.
void pass_on(MPI_Comm communicator) {
  int own = 0, ranks = 0;
  MPI_Comm_rank(communicator, &own);
  MPI_Comm_size(communicator, &ranks);
  const int to = (own + 1) % ranks, from = (own + ranks - 1) % ranks;
  Strided message(blocks);
  message.values.front() = own;
  std::vector<int> incoming(message.values.size(), -1);
  MPI_Request request;
  MPI_Irecv(incoming.data(), 1, message.type, from, tag, communicator, &request);
  MPI_Send(message.values.data(), 1, message.type, to, tag, communicator);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  message.values.front() = from;
  EXPECT_TRUE(placed(std::vector<int>(incoming.size(), -1), message.packed(blocks), length, stride) == incoming);
}

/// The ranks of MPI_COMM_WORLD, in that order or the opposite one.
MPI_Comm all_ranks(bool is_reversed) {
  MPI_Comm made;
  MPI_Comm_split(MPI_COMM_WORLD, 0, is_reversed ? -rank() : rank(), &made);
  return made;
}

int pass_on_again(MPI_Comm communicator, int, void*, void*) {
  pass_on(communicator);
  return MPI_SUCCESS;
}

/// `free` frees a communicator that has an attribute whose delete callback passes messages on.
template <class Free>
void free_with_callback(Free free) {
  constexpr int rounds = 6, messages = 20;
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, pass_on_again, &keyval, nullptr);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm communicator = all_ranks(round % 2 != 0);
    if (round % 3 == 0) MPI_Comm_set_attr(communicator, keyval, nullptr);
    for (int i = 0; i < messages; ++i) pass_on(communicator);
    if (round % 3 == 1) MPI_Comm_set_attr(communicator, keyval, nullptr);
    free(communicator);
  }
  MPI_Comm_free_keyval(&keyval);
}

TEST(SlotsFreed, CallbacksSendOnTheCommunicator) {
  free_with_callback([](MPI_Comm& communicator) { MPI_Comm_free(&communicator); });
}

/// Frees a communicator while a message is under way on it. MPICH ends the communicator in the call that completes the
/// message.
void free_under_way(MPI_Comm& communicator) {
  int own = 0, ranks = 0, sent = 0, received = -1;
  MPI_Comm_rank(communicator, &own);
  MPI_Comm_size(communicator, &ranks);
  MPI_Request receiving, sending;
  MPI_Irecv(&received, 1, MPI_INT, (own + ranks - 1) % ranks, late_tag, communicator, &receiving);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Isend(&sent, 1, MPI_INT, (own + 1) % ranks, late_tag, communicator, &sending);
  MPI_Comm_free(&communicator);
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
  MPI_Wait(&receiving, MPI_STATUS_IGNORE);
  EXPECT_EQ(sent, received);
}

TEST(SlotsFreed, CallbacksSendOnACommunicatorThatEndsLater) {
  if (is_intel_mpi()) GTEST_SKIP() << "Intel MPI 2021.18 hangs in such a callback";
  free_with_callback(free_under_way);
}

/// The next communicators have its handle.
TEST(SlotsFreed, CommunicatorsAfterOneThatEndsLaterHaveHeaders) {
  for (int round = 0; round < 4; ++round) {
    MPI_Comm communicator;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    pass(1000, send, receive, communicator);
    if (round == 0) {
      free_under_way(communicator);
    } else {
      MPI_Comm_free(&communicator);
    }
  }
}

/// Frees a communicator that cannot be freed; the error handler leaves the call by longjmp.
void jump_out_of_freeing(MPI_Comm mistaken) {
  const HandlerOfWorldAndSelf leaves(jump);
  static MPI_Comm freed;
  freed = mistaken;
  if (setjmp(landing) != 0) return;
  MPI_Comm_free(&freed);
  ADD_FAILURE() << "The handler was not called.";
}

TEST(SlotsFreed, CommunicatorsAfterAJumpOutOfFreeingHaveHeaders) {
  for (const MPI_Comm mistaken : {MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD}) {
    jump_out_of_freeing(mistaken);
    MPI_Comm communicator;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    pass(1000, send, receive, communicator);
    MPI_Comm_free(&communicator);
  }
}

/// Receives what was probed before.
int receive_probed(MPI_Comm communicator, int, void* message, void*) {
  const auto& expected = *static_cast<const Strided*>(message);
  if (sends()) return MPI_SUCCESS;
  std::vector<int> incoming(expected.values.size(), -1);
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Recv(incoming.data(), 1, expected.type, partner(), late_tag, communicator, MPI_STATUS_IGNORE));
  EXPECT_TRUE(placed(std::vector<int>(incoming.size(), -1), expected.packed(blocks), length, stride) == incoming);
  return MPI_SUCCESS;
}

TEST(SlotsFreed, CallbacksReceiveWhatWasProbed) {
  Strided message(blocks);
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, receive_probed, &keyval, nullptr);
  MPI_Comm communicator = all_ranks(false);
  for (int i = 0; i < 20; ++i) pass_on(communicator);
  MPI_Comm_set_attr(communicator, keyval, &message);
  MPI_Request request = MPI_REQUEST_NULL;
  if (sends()) {
    MPI_Isend(message.values.data(), 1, message.type, partner(), late_tag, communicator, &request);
  } else {
    MPI_Probe(partner(), late_tag, communicator, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&communicator);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free_keyval(&keyval);
}

}  // namespace
}  // namespace gapless::test
