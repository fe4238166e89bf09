// What the tests of mistakes ask.
#pragma once

#include <mpi.h>

#include <thread>
#include <vector>

#include "on_endpoints.hpp"

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

}  // namespace gapless::test
