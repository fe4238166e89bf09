// The calls of MPI that cases are made of, with int and with MPI_Count, on buffers and on MPI_BOTTOM, and what came of
// each: return class, calls of the error handler, status, and every byte.
#pragma once

#include <mpi.h>

#include <span>
#include <string>
#include <vector>

#include "cases/plan.hpp"
#include "job.hpp"
#include "sides/buffer.hpp"

/// Calls MPI_name, or MPI_name_c where `large` and the library has it.
#if MPI_VERSION >= 4
#define GAPLESS_CALL_EITHER(large, name, ...) ((large) ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__))
#else
#define GAPLESS_CALL_EITHER(large, name, ...) MPI_##name(__VA_ARGS__)
#endif

namespace gapless::test::differential {

/// What came of a case on one rank, for people and for comparison with another run.
class Outcome {
 public:
  void begin(const std::string& call) { text_ += (text_.empty() ? "" : "; ") + call; }
  void note(const char* what, const std::string& value) { text_ += std::string(" ") + what + "=" + value; }
  void note(const char* what, long long value) { note(what, std::to_string(value)); }
  /// Notes a value that the oracle knows.
  void expect(const char* what, long long wanted, long long found);
  void count_check() { ++checks_; }
  void find_wrong() { is_right_ = false; }

  const std::string& text() const { return text_; }
  bool is_right() const { return is_right_; }
  int checks() const { return checks_; }

 private:
  std::string text_;
  bool is_right_ = true;
  int checks_ = 0;
};

/// What a thread of a rank works with.
struct Context {
  const Job* job;
  int thread;
  int ordinal;  ///< of the case among those of this thread
  MPI_Comm intra;
  MPI_Comm inter;  ///< MPI_COMM_NULL for one rank
  MPI_Comm quiet;  ///< no message is ever sent on it
  MPI_Errhandler handler;
  bool is_alone;  ///< no other thread of the process runs cases

  MPI_Comm communicator(const Case& plan) const { return plan.inter ? inter : intra; }
  int ranks() const { return job->ranks(); }
  int rank() const { return job->rank(); }
  void reach(Stage stage) const { job->reach(thread, ordinal, stage); }
  void wait_for(int rank, Stage stage) const;
};

/// The error handler of cases with user_handler; returns.
void count_error(MPI_Comm* communicator, int* code, ...);
/// Calls of the handler in this thread since the last time it was asked.
int handler_calls();

/// Who this rank exchanges messages with in a case.
struct Partner {
  bool sends = false;
  bool receives = false;
  int rank = MPI_PROC_NULL;  ///< in the communicator, or in the other group
  int world_rank = -1;
};
Partner partner_in(const Case& plan, const Context& context);

/// A side at a place in memory, as a call is given it.
class Argument {
 public:
  Argument(const Side& side, Buffer& buffer, bool from_bottom);
  ~Argument();
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;

  void* address;
  int count;
  MPI_Datatype type;

 private:
  bool owns_type_ = false;
};

/// The process's buffer for MPI_Bsend, roomy but while one of these lives that has `bytes` of its own.
class BsendBuffer {
 public:
  static void attach_roomy();
  static void detach();
  BsendBuffer() = default;
  ~BsendBuffer();
  BsendBuffer(const BsendBuffer&) = delete;
  BsendBuffer& operator=(const BsendBuffer&) = delete;
  void attach(int bytes);

 private:
  std::vector<char> own_;
};

/// A status to be filled, which holds rubbish before.
class Status {
 public:
  explicit Status(bool wanted);
  MPI_Status* get() { return wanted_ ? &status_ : MPI_STATUS_IGNORE; }
  void set(const MPI_Status& status) { status_ = status; }
  /// Notes source, tag, length and number of elements received into a side, if the program looks at them.
  void note(Outcome& outcome, const Side& into) const;
  void expect(Outcome& outcome, int source, int tag, std::size_t bytes, const Side& into) const;

 private:
  MPI_Status status_;
  bool wanted_;
};

/// Completes all requests, by `completion`, and gives the statuses of those that want one. The first error of any.
int complete(Completion completion, std::span<MPI_Request> requests, std::span<Status*> statuses);

/// Notes the return value of a call and the calls of the handler. True if neither tells of an error.
bool note_return(Outcome& outcome, const Case& plan, int code);
/// Notes what a receive of `stream` into `buffer` left there; after an error, only what lies outside of its elements.
void note_received(Outcome& outcome, const Case& plan, const Buffer& buffer, const Stream& stream, bool erred);
/// Notes whether memory that the call has only to read is as it was.
void note_untouched(Outcome& outcome, const Buffer& buffer);

// The families.
void run_message(const Case& plan, const Context& context, Outcome& outcome);
void run_exchange(const Case& plan, const Context& context, Outcome& outcome);
void run_packing(const Case& plan, const Context& context, Outcome& outcome);
void run_misuse(const Case& plan, const Context& context, Outcome& outcome);

}  // namespace gapless::test::differential
