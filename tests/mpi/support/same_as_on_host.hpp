// A call on GPU memory leaves there what the library's own leaves in host memory.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/layouts.hpp"
#include "support/messages.hpp"
#include "support/statistics.hpp"

namespace gapless::test {

inline constexpr std::size_t ints = 4096;

/// Takes two memories of `ints` ints; returns an MPI error code.
using HostOrGpuCall = std::function<int(void* sent, void* received)>;

/// Two memories of different bytes, which differ from rank to rank.
struct TwoMemories {
  std::vector<std::byte> sent = std::vector<std::byte>(ints * sizeof(int)), received = sent;

  TwoMemories() {
    for (std::size_t i = 0; i < ints; ++i) {
      const int out = static_cast<int>(i) + 10'000 * rank(), in = -1 - static_cast<int>(i) - 10'000 * rank();
      std::memcpy(&sent[i * sizeof(int)], &out, sizeof out);
      std::memcpy(&received[i * sizeof(int)], &in, sizeof in);
    }
  }
};

/// A datatype with gaps, and an operation of the program's own that adds what is in its data and leaves the gaps.
inline MPI_Datatype three_pairs() { return strided(3, 2, 4); }
inline MPI_Op sum_of_three_pairs() {
  MPI_Op sum;
  MPI_Op_create(
      [](void* in, void* inout, int* count, MPI_Datatype*) {
        for (int i = 0; i < *count * 12; ++i) {
          if (i % 4 < 2) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
        }
      },
      1, &sum);
  return sum;
}

/// Runs `native` on host memory, and `call` on GPU memory with the same bytes, sends, receives or both from there.
inline void expect_same_as_on_host(const std::string& what, const HostOrGpuCall& native, const HostOrGpuCall& call) {
  TwoMemories wanted;
  const TwoMemories before;
  ASSERT_EQ(MPI_SUCCESS, native(wanted.sent.data(), wanted.received.data())) << what;
  for (const auto& [from_gpu, to_gpu] : {std::pair{true, true}, {true, false}, {false, true}}) {
    SCOPED_TRACE(what + (from_gpu ? ", from the GPU" : ", from the host") + (to_gpu ? " to the GPU" : " to the host"));
    TwoMemories host;
    OnGpu gpu_sent(before.sent), gpu_received(before.received);
    EXPECT_EQ(MPI_SUCCESS,
              call(from_gpu ? gpu_sent.at() : host.sent.data(), to_gpu ? gpu_received.at() : host.received.data()));
    EXPECT_TRUE(same_bytes(wanted.sent, from_gpu ? gpu_sent.bytes() : host.sent));
    EXPECT_TRUE(same_bytes(wanted.received, to_gpu ? gpu_received.bytes() : host.received));
  }
}

/// One element of the datatypes tried: with gaps, contiguous, contiguous behind a gap.
inline std::vector<MPI_Datatype> datatypes_to_try() {
  MPI_Datatype shifted;
  const int length = 3, place = 2;
  MPI_Type_indexed(1, &length, &place, MPI_INT, &shifted);
  return {strided(3, 2, 4), strided(1, 5, 5), shifted};
}

template <class Body>
void for_datatypes(Body body) {
  for (const MPI_Datatype handle : datatypes_to_try()) {
    const Owned type(handle);
    body(static_cast<MPI_Datatype>(type));
  }
}

}  // namespace gapless::test
