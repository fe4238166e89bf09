// What happens in one case: a pure function of seed and number, so that every rank knows it without a message, and a
// case is the same whatever ran before it, with gapless or without.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sides/buffer.hpp"
#include "support/random.hpp"

namespace gapless::test::differential {

enum class Family {
  message,     ///< one message, right in every respect
  exchange,    ///< MPI_Sendrecv and MPI_Sendrecv_replace, met by themselves or by nonblocking calls
  truncation,  ///< messages and exchanges that are longer than the receive
  partial,     ///< messages that end inside a basic element of the receive, or are of another type
  packing,     ///< MPI_Pack and MPI_Unpack
  misuse,      ///< calls with a wrong argument, and calls with MPI_PROC_NULL
};
inline constexpr int families = 6;
const char* name(Family family);

/// How a message is sent and received.
enum class Send { send, ssend, bsend, rsend, sendrecv, replace, isend, issend, ibsend, irsend, send_init };
inline constexpr int sends = 11;
enum class Receive { recv, mrecv, sendrecv, replace, irecv, imrecv, recv_init };
inline constexpr int receives = 7;
const char* name(Send kind);
const char* name(Receive kind);
inline bool is_nonblocking(Send kind) { return kind >= Send::isend; }
inline bool is_nonblocking(Receive kind) { return kind >= Receive::irecv; }

/// Which call completes what is nonblocking.
enum class Completion { wait, waitall, waitany, waitsome, test, testall, testany, testsome, asked_first };
inline constexpr int completions = 9;
const char* name(Completion completion);

/// Is the message there before it is received?
enum class Arrival { any, posted, probed };

/// How both ends of an exchange make it.
enum class Exchange { sendrecv, replace, against_nonblocking, replace_against_nonblocking };

/// A call with a mistake, or with MPI_PROC_NULL.
enum class Call { send, ssend, bsend, rsend, recv, mrecv, sendrecv, replace, pack, unpack, isend, irecv };
inline constexpr int calls = 12;
enum class Mistake {
  none,  ///< MPI_PROC_NULL
  rank_too_large,
  rank_negative,
  tag_negative,
  count_negative,
  type_null,
  type_uncommitted,
  communicator_null,
  communicator_unset,
  null_message,
  null_buffer,
  packed_too_small,
  position_beyond
};
inline constexpr int mistakes = 13;
const char* name(Call call);

struct Case {
  std::uint64_t number = 0;
  std::uint64_t key = 0;  ///< determines the data
  Family family{};

  Side out;  ///< what is sent
  Side in;   ///< where to; in an exchange by MPI_Sendrecv_replace both
  Send send{};
  Receive receive{};
  bool exchanges = false;  ///< both ways at once, as `exchange` says, instead of by `send` and `receive`
  Exchange exchange{};
  Arrival arrival{};
  Completion completion{};
  bool large_send = false;  ///< MPI_Send_c and so on, where the library has them
  bool large_receive = false;
  bool any_source = false;
  bool any_tag = false;
  bool wants_status = false;
  bool bottom_send = false;  ///< MPI_BOTTOM with a type of absolute addresses
  bool bottom_receive = false;
  bool scant_buffer = false;  ///< a buffered send finds just as much room as it needs

  Call call{};  ///< of the family misuse
  Mistake mistake{};

  bool user_handler = false;  ///< a function that returns, instead of MPI_ERRORS_RETURN
  bool inter = false;         ///< on the intercommunicator
  bool to_self = false;       ///< every rank to itself
  int shuffle = 0;            ///< which ranks are partners
  int tag = 0;

  /// May the library call it an error? Then the library alone knows what is to come of it.
  bool is_erroneous() const {
    return family == Family::truncation || family == Family::partial || family == Family::misuse;
  }
  std::string text() const;
};

/// For `ranks` ranks.
Case plan(std::uint64_t seed, std::uint64_t number, int ranks);
Family family_of(std::uint64_t seed, std::uint64_t number);

/// Random numbers of a case for what its family draws itself.
Random random_for(const Case& plan, std::uint64_t purpose);

}  // namespace gapless::test::differential
