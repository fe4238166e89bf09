// The messages of one exchange, in which each part is a message of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "mpi/calls/staged/memory_argument.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/buffers/placeholder.hpp"

namespace gapless::mpi::by_messages {

/// One side of an exchange: parts, and the rank that each part goes to or comes from, MPI_PROC_NULL for nobody.
struct PartsOfSide {
  std::vector<Part> parts;
  std::vector<int> peers;

  std::size_t size() const noexcept { return std::min(parts.size(), peers.size()); }
};

/// Has the part no bytes? Then the other end has no part either.
bool is_empty(const Part& part) noexcept;

/// What the library would find wrong with a part that is not described: MPI_SUCCESS, or the error that is to be raised.
/// An opaque datatype is no mistake.
int mistake_in(const Part& part, const UserBuffer& user) noexcept;

/// The messages. From begin() on no memory is needed. The other end waits for a message that cannot be packed or
/// unpacked here, so a placeholder goes or comes in the message's place: zeros.
class Messages {
 public:
  Messages() noexcept = default;
  ~Messages() { let_go(); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// Gets memory for `most` messages of an exchange. Throws std::bad_alloc.
  void reserve(std::size_t most);

  /// Begins an exchange, whose messages go by `lane`.
  void begin(MPI_Comm lane) noexcept {
    let_go();
    lane_ = lane;
  }
  // MPI_SUCCESS, or the error that is to be raised. Precondition: no more messages than reserved.
  int send(const Part& part, int peer) noexcept;
  int receive(const Part& part, int peer) noexcept;
  /// Waits for all messages. MPI_SUCCESS, or the first error.
  int finish() noexcept;
  /// Lets go of messages under way, where an exchange ends early.
  void let_go() noexcept;

 private:
  /// As many requests as MPI_Waitall completes without memory of its own.
  static constexpr std::size_t at_a_time = 64;

  struct Message {
    Part part;
    int peer;
    bool stays;  ///< turned out, after the send, to be one that cannot leave
    transfer::Placeholder placeholder;

    /// Memory of as many bytes in the place of the part; null if the part's datatype has no size.
    std::byte* reserve_placeholder(MPI_Count& bytes) noexcept;
  };

  Message& add(const Part& part, int peer) noexcept;
  void send_placeholder(Message& message, MPI_Request& request) noexcept;
  /// Sends placeholders of messages that stay. MPI_SUCCESS, or the first of these messages' errors.
  int replace_staying() noexcept;

  MPI_Comm lane_ = MPI_COMM_NULL;
  std::size_t most_ = 0, count_ = 0;
  std::unique_ptr<MPI_Request[]> requests_;
  std::unique_ptr<Message[]> messages_;  ///< by request
};

/// Exchanges in which parts in GPU memory that could be read in one pass have gone as messages of their own, because no
/// peer has mapped the memory.
struct Unmapped {
  unsigned in_a_row = 0, in_all = 0;
};

/// The memory of a rank's exchanges of one kind, which the rank gets before any other rank counts on its messages.
struct Exchanged {
  PartsOfSide sent, received;  ///< the peers stay, the parts are a call's
  Messages messages;
  std::byte* workspace = nullptr;  ///< of reductions, in host memory
  transfer::Placeholder workspace_pages;
  bool is_there = false;
};

}  // namespace gapless::mpi::by_messages
