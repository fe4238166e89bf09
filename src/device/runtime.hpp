// The GPU as memory: what a plugin does with contexts, streams and memory. Kernels are behind pack::GpuEngine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/location.hpp"

namespace gapless::device {

enum class Status : std::uint8_t { ok, out_of_memory, unsupported, failed };

/// What a plugin does. All functions are thread-safe, leave the calling thread's current device as it was, never throw
/// and never write to stdout. After a failure last_error() describes it for the calling thread.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual const char* name() const noexcept = 0;  ///< "cuda", "simulated"
  virtual int device_count() noexcept = 0;
  virtual std::string describe(int device) = 0;  ///< one line for `gapless info`
  virtual const char* last_error() noexcept = 0;

  virtual Location locate(const void* pointer) noexcept = 0;

  /// The number of the context in which the calling thread uses the GPU; 0 after a failure. What is allocated or made
  /// on the GPU belongs to that context and goes with it, as cudaDeviceReset makes it go; none has the number of
  /// another. Takes some 20 ns.
  virtual std::uint64_t context(int device) noexcept = 0;
  /// Is the context of that number still there? What belonged to one that is not must neither be used nor released.
  virtual bool has_context(std::uint64_t number) noexcept = 0;

  /// kind is device (on `device`) or pinned (mapped into every GPU's address space).
  virtual Status allocate(MemoryKind kind, int device, std::size_t bytes, void** result) noexcept = 0;
  virtual void release(MemoryKind kind, int device, void* pointer) noexcept = 0;

  /// A stream (cudaStream_t) of the library's own, one per thread and GPU, non-blocking with respect to the legacy
  /// stream; nullptr after a failure.
  virtual void* stream(int device) noexcept = 0;
  /// Makes `stream` wait for everything the program issued so far to the legacy default stream of `device`.
  virtual Status follow_default_stream(int device, void* stream) noexcept = 0;
  virtual Status copy(void* destination, const void* source, std::size_t bytes, int device, void* stream) noexcept = 0;
  virtual Status synchronize(int device, void* stream) noexcept = 0;
  /// Would synchronize() return at once, be it with a failure?
  virtual bool is_idle(int device, void* stream) noexcept = 0;

  /// Lets kernels of `device` address the memory of `peer`; unsupported where the machine cannot. Costs nothing once it
  /// is done.
  virtual Status enable_peer(int device, int peer) noexcept = 0;
};

}  // namespace gapless::device

/// What a plugin exports. `interface_version` must equal gapless_device_interface_version, else it returns null.
extern "C" gapless::device::Runtime* gapless_device_open(int interface_version);
inline constexpr int gapless_device_interface_version = 6;
