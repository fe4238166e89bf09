// One message between two ranks, in every mode MPI has to send it and every way to receive it.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <vector>

namespace gapless::test {

/// The modes of sending; the persistent one passes by gapless.
enum class SendMode { send, ssend, bsend, rsend, isend, persistent };
inline constexpr int send_modes = 6;
enum class ReceiveWay { recv, mrecv, irecv, persistent };
inline constexpr int receive_ways = 4;
const char* name(SendMode mode);
const char* name(ReceiveWay way);

struct Message {
  void* memory;
  int count;
  MPI_Datatype type;
};

/// Sends `outgoing` to `partner`, which may be this process, while it sends the like here; receives into `incoming`.
/// An Rsend is always met by an Irecv.
void exchange(SendMode mode, ReceiveWay way, const Message& outgoing, const Message& incoming, int partner,
              MPI_Status* status, MPI_Comm communicator = MPI_COMM_WORLD, int tag = 7);

/// Equality that says where the first difference is, not a thousand bytes.
testing::AssertionResult same_bytes(const std::vector<std::byte>& wanted, const std::vector<std::byte>& got);

}  // namespace gapless::test
