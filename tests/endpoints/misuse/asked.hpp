// What the tests of mistakes ask.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "on_endpoints.hpp"
#include "support/environment.hpp"

namespace gapless::test {

/// Endpoints are made under MPI_THREAD_MULTIPLE alone.
inline bool has_threads() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

/// What each endpoint of this process gets from `work(handle)`, an error class, on a thread of its own.
template <class Work>
std::vector<int> classes_of(std::vector<MPI_Comm>& handles, Work work) {
  std::vector<int> classes(handles.size(), -1);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < handles.size(); ++i)
    threads.emplace_back([&, i] { classes[i] = error_class(work(handles[i])); });
  for (std::thread& thread : threads) thread.join();
  return classes;
}

inline int differs(int expected_class, int code) { return expected_class != error_class(code); }

/// How often handlers of a communicator are told of errors.
template <int which>
struct Told {
  static inline std::atomic<int> times = 0;
  static void handle(MPI_Comm*, int*, ...) { ++times; }
  Told() { MPI_Comm_create_errhandler(handle, &handler); }
  ~Told() { MPI_Errhandler_free(&handler); }
  MPI_Errhandler handler;
};

/// Communicators of this process alone, until the library has none left: false where it has very many.
class LastCommunicators {
 public:
  LastCommunicators() {
    constexpr std::size_t many = 4000;
    for (MPI_Comm copy; copies_.size() < many && MPI_Comm_dup(MPI_COMM_SELF, &copy) == MPI_SUCCESS;)
      copies_.push_back(copy);
    ran_out_ = copies_.size() < many;
  }
  ~LastCommunicators() {
    while (!copies_.empty()) free_one();
  }
  LastCommunicators(const LastCommunicators&) = delete;
  LastCommunicators& operator=(const LastCommunicators&) = delete;

  explicit operator bool() const { return ran_out_; }
  void free_one() {
    MPI_Comm_free(&copies_.back());
    copies_.pop_back();
  }

 private:
  std::vector<MPI_Comm> copies_;
  bool ran_out_ = false;
};

}  // namespace gapless::test
