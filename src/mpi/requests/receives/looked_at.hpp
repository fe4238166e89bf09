// Nonblocking receives that gapless leaves to the library, and looks at when they are complete: a header may have come
// in the message's place. A contiguous receive has the header in one piece; a noncontiguous receive has the header
// scattered over its blocks. The calls that complete requests compare the first bytes, and most often do no more.
//
// While no peer has called for this process's attention, noncontiguous receives are unattended
// (transfer/headers/attention.hpp): nobody looks at them. A receive whose request goes to any other call, or to one
// call with a pending message's (mpi/requests/pending.hpp), becomes a pending message. In programs with several threads
// every such receive is a pending message from the start.
//
// While the library is asked to complete receives, they are hidden from find(). A receive whose request is asked for
// alone, or with all others of its list, has a flag (Held, InPlace). Of a list of which some may be completed, the list
// itself says so (Several): who of it is complete is known only afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/hash.hpp"
#include "mpi/calls/sides/scattered.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi::requests::looked_at {

/// What gapless keeps of a noncontiguous receive, from before the library begins the receive.
struct Blocks {
  const transfer::Described* described = nullptr;   ///< the datatype's, while the datatype lives
  std::shared_ptr<const transfer::Described> kept;  ///< the same, once the datatype has ended before the receive
  Scattered place;
  std::uint8_t bytes_there = 0;  ///< how many bytes of a header the first block has, which are compared
  Blocks* next = nullptr;        ///< in the list of unused blocks
};
/// Prepares a noncontiguous receive. Null where the receive must become a pending message.
Blocks* acquire(const TypeRecord& record, const void* landing) noexcept;
void release(Blocks* blocks) noexcept;

/// Counts a receive at which nobody looks, from before the library begins the receive: of all that are under way here
/// the first one alone, as transfer::headers::Unattended, so that the others need no locked instruction. False, and the
/// receive is not counted, if a peer has called: this process must look at the receive.
bool begin_unattended() noexcept;
void end_unattended() noexcept;

struct Receive {
  MPI_Request handle;  ///< means nothing where the place is free
  void* memory;
  MPI_Count count;
  MPI_Datatype datatype;
  MPI_Comm communicator;
  const void* landing = nullptr;  ///< the first byte that is received
  Blocks* blocks = nullptr;       ///< null where the memory is contiguous, or nobody looks
  bool is_unattended = false;
  bool is_held = false;       ///< a call is completing the receive (Held)
  std::uint64_t made_at = 0;  ///< how many receives had been added before

  bool is_free() const noexcept { return landing == nullptr; }
};

namespace internal {
inline constexpr std::size_t ways = 4;
inline constexpr unsigned set_bits = 6;
using Set = std::array<Receive, ways>;
extern std::array<Set, std::size_t{1} << set_bits> table;
extern std::size_t used;
extern int calls_under_way;  ///< of Several

/// Is one of the calls under way to complete the receive?
bool is_under_way(const Receive& receive) noexcept;
}  // namespace internal

inline bool are_any() noexcept { return internal::used != 0; }

inline internal::Set& set_of(MPI_Request handle) noexcept {
  return internal::table[slot_of(number_of(handle), internal::set_bits)];
}
/// The receive of that request; null if the request is none of these.
inline Receive* find(MPI_Request handle) noexcept {
  for (Receive& place : set_of(handle)) {
    if (place.is_free() || place.handle != handle || place.is_held) continue;
    if (internal::calls_under_way == 0 || !internal::is_under_way(place)) return &place;
  }
  return nullptr;
}

/// Hides a receive from find() while the library is asked to complete it. An error handler or a callback of a
/// generalized request may run meanwhile, and the library may give the receive's handle to a request that the callback
/// makes.
class Held {
 public:
  explicit Held(Receive& receive) noexcept : receive_(receive) { receive.is_held = true; }
  ~Held() { receive_.is_held = false; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Receive& receive_;
};

/// Enters a receive that the library has begun. MPI_SUCCESS, or MPI_ERR_NO_MEM.
int add(const Receive& receive) noexcept;
/// Makes a pending message of the receive with that handle, if there is one here. Without memory the receive stays.
void promote(MPI_Request handle) noexcept;
void promote_all() noexcept;
/// Forgets the receives whose completing call an error handler has left by longjmp. Precondition: no other call is
/// under way.
void forget_left() noexcept;
/// The program frees a datatype: contiguous receives of that datatype go on as bytes, and others keep its description.
void outlive(MPI_Datatype datatype, const TypeRecord& record) noexcept;

// The program's calls, for a receive that find() has found.
int wait(Receive& receive, MPI_Request* request, MPI_Status* status) noexcept;
int test(Receive& receive, MPI_Request* request, int* flag, MPI_Status* status) noexcept;

/// Can the calls below serve these requests? They can where none of them is a pending message's.
bool can_serve(int count, const MPI_Request* requests) noexcept;
int wait_all(int count, MPI_Request* requests, MPI_Status* statuses) noexcept;
int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) noexcept;
int wait_any(int count, MPI_Request* requests, int* index, MPI_Status* status) noexcept;
int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) noexcept;
int wait_some(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) noexcept;
int test_some(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) noexcept;

/// The receives of one call of MPI_Waitall, which need not become pending messages.
class InPlace {
 public:
  static constexpr int most = 64;

  /// Notes request `i` of the call. False, and not noted, where the request is no such receive, or `most` are noted
  /// already.
  bool note(int i, MPI_Request request) noexcept {
    Receive* const place = find(request);
    if (place == nullptr || count_ == most) return false;
    all_[static_cast<std::size_t>(count_++)] = {i, MPI_SUCCESS, place, place->communicator};
    return true;
  }
  bool are_any() const noexcept { return count_ != 0; }
  /// To be called before the library waits: hides the receives (Held) until end().
  void hold() noexcept {
    for (int k = 0; k < count_; ++k) all_[static_cast<std::size_t>(k)].place->is_held = true;
  }
  /// To be called after the library has waited: fetches the messages whose headers have come, and corrects their
  /// statuses, unless the program ignores statuses.
  void end(const MPI_Request* requests, MPI_Status* statuses) noexcept;
  /// For a call that ends with `code`: adds the errors of end() to the program's statuses, and raises the first if
  /// `code` is MPI_SUCCESS. Returns the call's code.
  int add_errors(MPI_Status* statuses, int count, int code) const noexcept;

 private:
  struct One {
    int index, code;
    Receive* place;
    MPI_Comm communicator;
  };
  std::array<One, most> all_;  // NOLINT: the first count_ are set
  int count_ = 0;
};

}  // namespace gapless::mpi::requests::looked_at

/// How many receives have been added so far, and how many of them have become pending messages later. For tests.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_receives_looked_at();
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_receives_promoted();
