// Receives of several threads, one of which probes. A probe takes messages for others out of the library into the stash
// (matched.hpp), so a receive has to look there, and to be given to the library before anything else is stashed: what
// is stashed between the two would be received too late, or never.
//
// As long as no thread has probed, all that costs is a load. From then on a receive that waits is one under a request,
// for nothing may be stashed while it is given to the library, and much may be while it waits.
#pragma once

#include <atomic>
#include <shared_mutex>
#include <type_traits>

#include "mpi/table/entry_points.hpp"

namespace gapless::mpi::headers {

namespace internal {
extern std::atomic<bool> threads_probe;
std::shared_mutex& posting_mutex() noexcept;
}  // namespace internal

/// Has any thread of a program with MPI_THREAD_MULTIPLE probed where headers are looked for?
inline bool do_threads_probe() noexcept { return internal::threads_probe.load(std::memory_order_acquire); }

/// While one lives, no other thread stashes anything.
class Posting {
 public:
  Posting() noexcept : locks_(do_threads_probe()) {
    if (locks_) internal::posting_mutex().lock_shared();
  }
  ~Posting() {
    if (locks_) internal::posting_mutex().unlock_shared();
  }
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;

 private:
  bool locks_;
};

/// While one lives, of a thread that probes, no other gives receives to the library.
class Stashing {
 public:
  Stashing() noexcept;
  ~Stashing();
  Stashing(const Stashing&) = delete;
  Stashing& operator=(const Stashing&) = delete;

 private:
  bool locks_;
};

/// MPI_Recv. Count is int or MPI_Count.
template <class Count>
int receive_by_request(void* memory, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm communicator,
                       MPI_Status* status) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_ERR_INTERN;
  if constexpr (std::is_same_v<Count, int>) {
    code = entry::Irecv(memory, count, datatype, source, tag, communicator, &request);
  } else {
    GAPLESS_IF_DECLARED(Irecv_c, code = entry::Irecv_c(memory, count, datatype, source, tag, communicator, &request);)
  }
  return code == MPI_SUCCESS ? entry::Wait(&request, status) : code;
}

/// MPI_Sendrecv.
template <class Count>
int exchange_by_request(const void* sent, Count sent_count, MPI_Datatype sent_type, int destination, int send_tag,
                        void* memory, Count count, MPI_Datatype datatype, int source, int receive_tag,
                        MPI_Comm communicator, MPI_Status* status) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_ERR_INTERN, sent_code = MPI_ERR_INTERN;
  if constexpr (std::is_same_v<Count, int>) {
    code = entry::Irecv(memory, count, datatype, source, receive_tag, communicator, &request);
    if (code != MPI_SUCCESS) return code;
    sent_code = entry::Send(sent, sent_count, sent_type, destination, send_tag, communicator);
  } else {
    GAPLESS_IF_DECLARED(Irecv_c, {
      code = entry::Irecv_c(memory, count, datatype, source, receive_tag, communicator, &request);
      if (code != MPI_SUCCESS) return code;
      sent_code = entry::Send_c(sent, sent_count, sent_type, destination, send_tag, communicator);
    })
  }
  if (sent_code != MPI_SUCCESS) entry::Cancel(&request);
  code = entry::Wait(&request, status);
  return sent_code != MPI_SUCCESS ? sent_code : code;
}

}  // namespace gapless::mpi::headers
