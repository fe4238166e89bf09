// Messages of one exchange, each part a message of its own.
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

/// Of one side of an exchange: parts, and the rank that each goes to or comes from, MPI_PROC_NULL for nobody.
struct PartsOfSide {
  std::vector<Part> parts;
  std::vector<int> peers;

  std::size_t size() const noexcept { return std::min(parts.size(), peers.size()); }
};

/// A part of no bytes is none at the other end either.
bool is_empty(const Part& part) noexcept;

/// What the library would find wrong with a part that is not described: MPI_SUCCESS, or the error that is to be raised.
/// A datatype that is not understood is no mistake.
int mistake_in(const Part& part, const UserBuffer& user) noexcept;

/// Needs no memory from begin() on. The other end waits for a message that cannot be packed or unpacked here, so a
/// placeholder goes or comes in its place.
class Messages {
 public:
  Messages() noexcept = default;
  ~Messages() { let_go(); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// For so many messages of an exchange. Throws std::bad_alloc.
  void reserve(std::size_t most);

  /// Of one exchange, whose messages go there.
  void begin(MPI_Comm lane) noexcept {
    let_go();
    lane_ = lane;
  }
  // MPI_SUCCESS, or the error that is to be raised. Precondition: there are no more than reserved.
  int send(const Part& part, int peer) noexcept;
  int receive(const Part& part, int peer) noexcept;
  /// Waits for all.
  int finish() noexcept;
  /// Of an exchange that ends early: those that are under way.
  void let_go() noexcept;

 private:
  /// As many as a call completes without memory of its own.
  static constexpr std::size_t at_a_time = 64;

  MPI_Request& next() noexcept { return requests_[count_++] = MPI_REQUEST_NULL; }
  /// Memory of as many bytes for the last message, if the part's datatype has a size, and nowhere otherwise.
  std::byte* in_place_of(const Part& part, MPI_Count& bytes) noexcept;

  MPI_Comm lane_ = MPI_COMM_NULL;
  std::size_t most_ = 0, count_ = 0;
  std::unique_ptr<MPI_Request[]> requests_;
  std::unique_ptr<transfer::Placeholder[]> placeholders_;
};

/// What a rank knows of its exchanges of one kind, and has memory for, before any other rank counts on its messages.
struct Exchanged {
  PartsOfSide sent, received;  ///< the peers stay, the parts are a call's
  Messages messages;
  bool is_there = false;
};

}  // namespace gapless::mpi::by_messages
