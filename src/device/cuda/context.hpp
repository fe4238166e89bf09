// What gapless keeps in a CUDA context, and how a call finds it.
//
// cudaDeviceReset destroys a GPU's context with all that is in it, and the next use of the GPU makes another one. So
// everything that lives in a context hangs from one object, and a call first looks whether the context is the one that
// the object was made for. If not, another object is made, and the old one is forgotten when nobody uses it any more:
// its destructor, and that of every member, frees host memory and calls no CUDA function, for those crash when given
// what is gone.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "device/cuda/scopes.hpp"
#include "device/cuda/slots.hpp"
#include "device/cuda/streams.hpp"

namespace gapless::device::cuda {

class Context {
 public:
  /// Of the context that is current, which has that number. `witness` is memory in it that stays allocated.
  Context(std::uint64_t number, const void* witness);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  std::uint64_t number() const noexcept { return number_; }
  /// What the driver calls it, as long as it is there.
  CUcontext handle() const noexcept { return handle_; }
  /// Is the context still there? Whatever context is current.
  bool is_there() const noexcept;
  /// Number of the context of GPU `peer` whose memory this one may address; nullptr where no number is kept.
  std::atomic<std::uint64_t>* accessible_peer(int peer) noexcept;

  IdleLanes idle_lanes;
  Slots slots;  ///< for the layers above

 private:
  std::uint64_t number_;
  CUcontext handle_;
  const void* witness_;
  std::uint64_t witness_number_;
  std::array<std::atomic<std::uint64_t>, 16> accessible_peers_{};
};

/// What a thread uses of a context, for as long as both are there. The lane is made when it is first needed.
struct ThreadPlace {
  int device;
  std::shared_ptr<Context> context;
  std::unique_ptr<Lane> lane;
};

/// The calling thread's place in the context of that number; nullptr before its first InContext there.
ThreadPlace* place_in(std::uint64_t context_number) noexcept;

/// The number of a context of the GPU that is there and in which the calling thread has a place; 0 where there is none.
std::uint64_t known_context(int device) noexcept;

/// Is there a context of that number, which an InContext has met?
bool is_there(std::uint64_t context_number) noexcept;

/// Makes `device` current, for as long as the object lives, and finds the thread's place there.
class InContext {
 public:
  explicit InContext(int device) noexcept;

  /// Whether the object could be made. The other functions may be called only if it is cudaSuccess.
  cudaError_t error() const noexcept { return error_; }
  Context& context() const noexcept { return *place_->context; }
  /// The calling thread's lane; nullptr with the reason in `error`.
  Lane* lane(cudaError_t& error) const noexcept;

 private:
  std::optional<CurrentDevice> device_;  ///< nothing where it was current already
  ThreadPlace* place_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace gapless::device::cuda
