#include "support/messages.hpp"

#include "support/environment.hpp"

namespace gapless::test {

const char* name(SendMode mode) {
  static constexpr const char* names[send_modes] = {"Send", "Ssend", "Bsend", "Rsend", "Isend", "Send_init"};
  return names[static_cast<int>(mode)];
}

const char* name(ReceiveWay way) {
  static constexpr const char* names[receive_ways] = {"Recv", "Mprobe and Mrecv", "Irecv", "Recv_init"};
  return names[static_cast<int>(way)];
}

namespace {

/// A buffer attached for one MPI_Bsend.
class AttachedBuffer {
 public:
  AttachedBuffer(const Message& message, MPI_Comm communicator) {
    int size;
    MPI_Pack_size(message.count, message.type, communicator, &size);
    bytes_.resize(static_cast<std::size_t>(size) + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(bytes_.data(), static_cast<int>(bytes_.size()));
  }
  ~AttachedBuffer() {
    void* address;
    int size;
    MPI_Buffer_detach(&address, &size);
  }

 private:
  std::vector<std::byte> bytes_;
};

void send(SendMode mode, const Message& message, int to, int tag, MPI_Comm communicator) {
  const auto& [memory, count, type] = message;
  switch (mode) {
    case SendMode::send:
      EXPECT_EQ(MPI_SUCCESS, MPI_Send(memory, count, type, to, tag, communicator));
      break;
    case SendMode::ssend:
      EXPECT_EQ(MPI_SUCCESS, MPI_Ssend(memory, count, type, to, tag, communicator));
      break;
    case SendMode::bsend: {
      AttachedBuffer buffer(message, communicator);
      EXPECT_EQ(MPI_SUCCESS, MPI_Bsend(memory, count, type, to, tag, communicator));
      break;
    }
    case SendMode::rsend:
      EXPECT_EQ(MPI_SUCCESS, MPI_Rsend(memory, count, type, to, tag, communicator));
      break;
    case SendMode::isend: {
      MPI_Request request;
      EXPECT_EQ(MPI_SUCCESS, MPI_Isend(memory, count, type, to, tag, communicator, &request));
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    }
    case SendMode::persistent: {
      MPI_Request request;
      EXPECT_EQ(MPI_SUCCESS, MPI_Send_init(memory, count, type, to, tag, communicator, &request));
      EXPECT_EQ(MPI_SUCCESS, MPI_Start(&request));
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
      MPI_Request_free(&request);
      break;
    }
  }
}

void receive(ReceiveWay way, const Message& message, int from, int tag, MPI_Comm communicator, MPI_Status* status) {
  const auto& [memory, count, type] = message;
  switch (way) {
    case ReceiveWay::recv:
      EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory, count, type, from, tag, communicator, status));
      break;
    case ReceiveWay::mrecv: {
      MPI_Message matched;
      EXPECT_EQ(MPI_SUCCESS, MPI_Mprobe(from, tag, communicator, &matched, MPI_STATUS_IGNORE));
      EXPECT_EQ(MPI_SUCCESS, MPI_Mrecv(memory, count, type, &matched, status));
      EXPECT_EQ(MPI_MESSAGE_NULL, matched);
      break;
    }
    case ReceiveWay::irecv: {
      MPI_Request request;
      EXPECT_EQ(MPI_SUCCESS, MPI_Irecv(memory, count, type, from, tag, communicator, &request));
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
      break;
    }
    case ReceiveWay::persistent: {
      MPI_Request request;
      EXPECT_EQ(MPI_SUCCESS, MPI_Recv_init(memory, count, type, from, tag, communicator, &request));
      EXPECT_EQ(MPI_SUCCESS, MPI_Start(&request));
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
      MPI_Request_free(&request);
      break;
    }
  }
}

/// With myself, one side must be nonblocking: the receive if the send blocks, else the send.
void exchange_with_myself(SendMode mode, ReceiveWay way, const Message& outgoing, const Message& incoming, int tag,
                          MPI_Comm communicator, MPI_Status* status) {
  MPI_Request request;
  const int me = rank(communicator);
  if (mode == SendMode::isend || mode == SendMode::persistent) {
    MPI_Isend(outgoing.memory, outgoing.count, outgoing.type, me, tag, communicator, &request);
    receive(way, incoming, me, tag, communicator, status);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    MPI_Irecv(incoming.memory, incoming.count, incoming.type, me, tag, communicator, &request);
    send(mode, outgoing, me, tag, communicator);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
  }
}

/// A ready send needs its receive posted, so only a nonblocking receive can meet it: its sender is told by an empty
/// message.
void receive_ready(const Message& message, int from, int tag, MPI_Comm communicator, MPI_Status* status) {
  MPI_Request request;
  MPI_Irecv(message.memory, message.count, message.type, from, tag, communicator, &request);
  MPI_Send(nullptr, 0, MPI_BYTE, from, tag + 1, communicator);
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, status));
}

}  // namespace

void exchange(SendMode mode, ReceiveWay way, const Message& outgoing, const Message& incoming, int partner,
              MPI_Status* status, MPI_Comm communicator, int tag) {
  const int me = rank(communicator);
  if (partner == me) return exchange_with_myself(mode, way, outgoing, incoming, tag, communicator, status);
  const auto send_side = [&] {
    if (mode == SendMode::rsend) MPI_Recv(nullptr, 0, MPI_BYTE, partner, tag + 1, communicator, MPI_STATUS_IGNORE);
    send(mode, outgoing, partner, tag, communicator);
  };
  const auto receive_side = [&] {
    if (mode == SendMode::rsend)
      receive_ready(incoming, partner, tag, communicator, status);
    else
      receive(way, incoming, partner, tag, communicator, status);
  };
  if (me < partner) {
    send_side();
    receive_side();
  } else {
    receive_side();
    send_side();
  }
}

testing::AssertionResult same_bytes(const std::vector<std::byte>& wanted, const std::vector<std::byte>& got) {
  if (wanted.size() != got.size())
    return testing::AssertionFailure() << got.size() << " bytes instead of " << wanted.size();
  std::size_t different = 0;
  std::size_t first = 0;
  for (std::size_t k = wanted.size(); k-- > 0;) {
    if (wanted[k] == got[k]) continue;
    ++different;
    first = k;
  }
  if (different == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << different << " of " << wanted.size() << " bytes differ, the first at " << first
                                     << ": " << static_cast<int>(got[first]) << " instead of "
                                     << static_cast<int>(wanted[first]);
}

}  // namespace gapless::test
