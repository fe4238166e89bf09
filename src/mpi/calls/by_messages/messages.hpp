// Messages of one exchange, each part a message of its own.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "mpi/calls/staged/memory_argument.hpp"
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

/// Those that are under way when an error ends the exchange early are let go of.
class Messages {
 public:
  explicit Messages(MPI_Comm lane) noexcept : lane_(lane) {}
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // MPI_SUCCESS, or the error that is to be raised. They throw std::bad_alloc. The other end waits for a message that
  // cannot be packed or unpacked here, so a placeholder goes or comes in its place.

  int send(const Part& part, int peer);
  int receive(const Part& part, int peer);
  /// Waits for all.
  int finish();

 private:
  /// A placeholder of as many bytes, if the part's datatype has a size, and nowhere otherwise.
  std::byte* in_place_of(const Part& part, int& bytes);

  MPI_Comm lane_;
  std::vector<MPI_Request> requests_;
  std::deque<transfer::Placeholder> placeholders_;
};

}  // namespace gapless::mpi::by_messages
