// A collective leaves in its memories what the library's own, blocking one leaves in host memory, in each of its forms:
// blocking, nonblocking, persistent, and these with large counts. The memories are a GPU's where the run has one.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/messages.hpp"
#include "support/same_as_on_host.hpp"
#include "support/statistics.hpp"

namespace gapless::test {

/// An array argument that functions of either count width take.
template <class Wide>
class Numbers {
 public:
  Numbers() = default;
  Numbers(std::vector<int> numbers) : narrow_(std::move(numbers)), wide_(narrow_.begin(), narrow_.end()) {}
  operator const int*() const { return narrow_.data(); }
  operator const Wide*() const { return wide_.data(); }
  int operator[](std::size_t i) const { return narrow_[i]; }

 private:
  std::vector<int> narrow_;
  std::vector<Wide> wide_;
};
using Counts = Numbers<MPI_Count>;
using Places = Numbers<MPI_Aint>;

/// Which of its two memories a call reads or writes in this process. A reduction's are never packed on the host.
struct Uses {
  bool sent = true, received = true;
  bool is_reduction = false;
};

/// Of MPI_Allgatherv, under MPICH: what is sent on is cut by the receiver's extent, so it is not packed in host memory.
inline Uses uses_of_allgatherv(bool sent) {
#if defined(OPEN_MPI)
  return {sent, true};
#else
  return {sent, has_gpu()};
#endif
}

class SameAsNative : public testing::Test {
 protected:
  ReturnErrors errors_{MPI_COMM_WORLD};
  const Owned gaps_{strided(30, 2, 4)}, none_{strided(1, 60, 60)};
  bool has_sent_gaps_ = true, has_received_gaps_ = true;

  /// Calls `body(sent, received)` with datatypes of one signature, one of which has gaps at least.
  template <class Body>
  void for_types(Body body) {
    for (const int gaps : {3, 2, 1}) {
      has_sent_gaps_ = (gaps & 1) != 0;
      has_received_gaps_ = (gaps & 2) != 0;
      body(has_sent_gaps_ ? gaps_ : none_, has_received_gaps_ ? gaps_ : none_);
    }
    has_sent_gaps_ = has_received_gaps_ = true;
  }

  void expect_same(const std::string& what, const Uses& uses, const HostOrGpuCall& native, const HostOrGpuCall& call) {
    TwoMemories wanted;
    const TwoMemories before;
    ASSERT_EQ(MPI_SUCCESS, native(wanted.sent.data(), wanted.received.data())) << what;
    for (const Ends& ends : all_ends()) {
      if (has_gpu() && !ends.from_gpu && !ends.to_gpu) continue;
      SCOPED_TRACE(what + " " + text(ends) + (has_sent_gaps_ ? ", gaps" : ", no gaps") +
                   (has_received_gaps_ ? " to gaps" : " to none"));
      Bytes sent(before.sent, ends.from_gpu), received(before.received, ends.to_gpu);
      const auto packed = has_gpu() ? gpu_messages() : packed_messages();
      EXPECT_EQ(MPI_SUCCESS, call(sent.data(), received.data()));
      EXPECT_TRUE(same_bytes(wanted.sent, sent.bytes()));
      EXPECT_TRUE(same_bytes(wanted.received, received.bytes()));
      if (packs(uses, ends)) {
        EXPECT_LT(packed, has_gpu() ? gpu_messages() : packed_messages());
      }
    }
  }

 private:
  class Bytes {
   public:
    Bytes(const std::vector<std::byte>& bytes, bool on_gpu) : host_(bytes) {
      if (on_gpu) gpu_ = std::make_unique<OnGpu>(bytes);
    }
    void* data() { return gpu_ ? gpu_->at() : host_.data(); }
    std::vector<std::byte> bytes() const { return gpu_ ? gpu_->bytes() : host_; }

   private:
    std::vector<std::byte> host_;
    std::unique_ptr<OnGpu> gpu_;
  };

  bool packs(const Uses& uses, const Ends& ends) const {
    if (!has_gpu() && !is_everything_packed()) return false;
    const bool packs_all = has_gpu() && !library_reads_gpu();
    // Else the operation of a reduction is called with the program's datatype.
    if (!under_gapless() || (!packs_all && uses.is_reduction)) return false;
    return (uses.sent && (packs_all || has_sent_gaps_) && (!has_gpu() || ends.from_gpu)) ||
           (uses.received && (packs_all || has_received_gaps_) && (!has_gpu() || ends.to_gpu));
  }
};

/// Starts a persistent request once and lets go of it.
inline int run_once(MPI_Request& request) {
  int code = MPI_Start(&request);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  return code;
}

#define GAPLESS_CALL_ON(body) [&]([[maybe_unused]] void* s, [[maybe_unused]] void* r) body

/// Each form of a collective, with arguments that say `s` and `r` for the memories; `uses`: Uses.
#define GAPLESS_EXPECT_BLOCKING(uses, name, called, ...)                                                 \
  expect_same("MPI_" #called, uses, GAPLESS_CALL_ON({ return GAPLESS_TEST_NATIVE(name)(__VA_ARGS__); }), \
              GAPLESS_CALL_ON({ return MPI_##called(__VA_ARGS__); }))
#define GAPLESS_EXPECT_NONBLOCKING(uses, name, called, ...)                                              \
  expect_same("MPI_" #called, uses, GAPLESS_CALL_ON({ return GAPLESS_TEST_NATIVE(name)(__VA_ARGS__); }), \
              GAPLESS_CALL_ON({                                                                          \
                MPI_Request request = MPI_REQUEST_NULL;                                                  \
                const int code = MPI_##called(__VA_ARGS__, &request);                                    \
                return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);               \
              }))
#define GAPLESS_EXPECT_PERSISTENT(uses, name, called, ...)                                               \
  expect_same("MPI_" #called, uses, GAPLESS_CALL_ON({ return GAPLESS_TEST_NATIVE(name)(__VA_ARGS__); }), \
              GAPLESS_CALL_ON({                                                                          \
                MPI_Request request = MPI_REQUEST_NULL;                                                  \
                const int code = MPI_##called(__VA_ARGS__, MPI_INFO_NULL, &request);                     \
                return code != MPI_SUCCESS ? code : run_once(request);                                   \
              }))

#if defined(OPEN_MPI)  // which lacks large counts
#define GAPLESS_EXPECT_LARGE(form, uses, name, called, ...)
#else
#define GAPLESS_EXPECT_LARGE(form, uses, name, called, ...) form(uses, name, called##_c, __VA_ARGS__)
#endif
#define GAPLESS_EXPECT_BLOCKING_FORMS(uses, name, ...)    \
  GAPLESS_EXPECT_BLOCKING(uses, name, name, __VA_ARGS__); \
  GAPLESS_EXPECT_LARGE(GAPLESS_EXPECT_BLOCKING, uses, name, name, __VA_ARGS__)
#define GAPLESS_EXPECT_REQUEST_FORMS(uses, name, nonblocking, ...)                        \
  GAPLESS_EXPECT_NONBLOCKING(uses, name, nonblocking, __VA_ARGS__);                       \
  GAPLESS_EXPECT_LARGE(GAPLESS_EXPECT_NONBLOCKING, uses, name, nonblocking, __VA_ARGS__); \
  GAPLESS_EXPECT_PERSISTENT(uses, name, name##_init, __VA_ARGS__);                        \
  GAPLESS_EXPECT_LARGE(GAPLESS_EXPECT_PERSISTENT, uses, name, name##_init, __VA_ARGS__)
#define GAPLESS_EXPECT_FORMS(uses, name, nonblocking, ...) \
  GAPLESS_EXPECT_BLOCKING_FORMS(uses, name, __VA_ARGS__);  \
  GAPLESS_EXPECT_REQUEST_FORMS(uses, name, nonblocking, __VA_ARGS__)

}  // namespace gapless::test
