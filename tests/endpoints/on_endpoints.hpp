// A function run on a thread for each endpoint of all processes. It counts what is wrong, for GoogleTest's checks
// belong to the main thread.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "gapless/endpoints.h"
#include "support/environment.hpp"

namespace gapless::test {

/// How many endpoints each process has, by its rank.
using Shape = std::function<int(int)>;

inline Shape each(int count) {
  return [count](int) { return count; };
}
inline int uneven(int process) { return process % 2 == 0 ? 3 : 1; }

class Endpoints {
 public:
  explicit Endpoints(const Shape& shape, MPI_Comm parent = MPI_COMM_WORLD)
      : handles_(static_cast<std::size_t>(shape(rank()))) {
    code = MPIX_Comm_create_endpoints(parent, static_cast<int>(handles_.size()), MPI_INFO_NULL, handles_.data());
  }
  /// Runs `work(handle)` on a thread for each endpoint; adds up what it returns. Frees the handles.
  int run(const std::function<int(MPI_Comm)>& work) {
    std::atomic<int> wrong = code != MPI_SUCCESS;
    std::vector<std::thread> threads;
    for (MPI_Comm& handle : handles_) {
      threads.emplace_back([&] {
        MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
        wrong += work(handle);
        wrong += MPI_Comm_free(&handle) != MPI_SUCCESS;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong;
  }
  std::vector<MPI_Comm>& handles() { return handles_; }
  int code = MPI_SUCCESS;

 private:
  std::vector<MPI_Comm> handles_;
};

inline int on_endpoints(const Shape& shape, const std::function<int(MPI_Comm)>& work) {
  return Endpoints(shape).run(work);
}

}  // namespace gapless::test
