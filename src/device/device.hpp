// The GPU runtime behind one interface.
//
// Core never links CUDA. Which kind of memory a pointer names is asked of the driver itself (libcuda, found at run
// time). Lists of allocations go stale (UCX's wrong data), so what was answered once is asked again, but where it can
// be known that the answer still holds (host_memory, host_pages, gpu_allocations). The rest is done by a plugin,
// libgapless-cuda.so, loaded when the first device pointer is met. GAPLESS_DEVICE_PLUGIN names another plugin; the
// tests use one whose "device" memory the CPU cannot touch, so that every GPU path runs, and every stray host access
// faults, without a GPU.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pack/job.hpp"
#include "pack/pair_job.hpp"

namespace gapless::device {

enum class MemoryKind : std::uint8_t {
  host,     ///< ordinary memory
  pinned,   ///< page-locked host memory: CPU and GPU can address it
  managed,  ///< migrates: CPU and GPU can address it
  device,   ///< only the GPU (and DMA) can address it: cudaMalloc, cudaMallocAsync, virtual memory management
};

struct Location {
  MemoryKind kind = MemoryKind::host;
  int device = -1;  ///< ordinal of the owning GPU; -1 for plain host memory
};

/// Which memory beside this GPU's own a job uses: an end that only this GPU's memory waits for is known a little
/// sooner, and copy engines are for the bus alone.
enum class Reach : std::uint8_t {
  this_gpu,
  beyond,       ///< some is written
  from_beyond,  ///< some is read, none is written
};

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

  /// Issues the jobs to `stream` (null: the legacy default stream); job.memory and job.packed must each be addressable
  /// by the GPU. Asynchronous: buffers must stay valid until the stream has passed this point, layouts only until the
  /// call returns.
  virtual Status run(std::span<const pack::Job> jobs, int device, void* stream) noexcept = 0;
  /// The same after everything the program issued so far to the legacy default stream of `device`, and done on return,
  /// by the way that takes the least time for a few small jobs. After a failure nothing uses the buffers any more.
  virtual Status run_and_wait(std::span<const pack::Job> jobs, int device, Reach reach) noexcept = 0;

  /// Issues a copy between two layouts to `stream`, as run() does; both memories must be addressable by `device`.
  virtual Status copy(const pack::PairJob& job, int device, void* stream) noexcept = 0;
  /// Lets kernels of `device` address the memory of `peer`; unsupported where the machine cannot. Costs nothing once it
  /// is done.
  virtual Status enable_peer(int device, int peer) noexcept = 0;

  /// Replaces what GAPLESS_GPU_ENGINE said, for tests and benchmarks; any other word than it knows: chosen per job.
  virtual void force_engine(const char* name) noexcept = 0;
};

namespace internal {

/// Who knows what memory a pointer names.
enum class Oracle : std::uint8_t { not_looked, nobody, driver, plugin };

extern std::atomic<Oracle> oracle;

/// Finds out, once.
Oracle look() noexcept;

inline Oracle known_oracle() noexcept {
  const Oracle known = oracle.load(std::memory_order_acquire);
  return known != Oracle::not_looked ? known : look();
}

}  // namespace internal

/// Can any pointer of this process be a GPU's? False, in two loads, where no driver is in the process.
inline bool in_use() noexcept { return internal::known_oracle() != internal::Oracle::nobody; }

/// Where the pointer's memory is. Never fails: what the driver does not know is host memory. Memory of the program's
/// own that it has page-locked (cudaHostRegister) may be called ordinary host memory, which is true and not all;
/// Runtime::locate says all.
Location locate(const void* pointer) noexcept;

/// Locates the pointers of one call of the program. Lives no longer than the call: what the program gives to it stays
/// allocated until then, so what the driver says of one pointer into an allocation holds for all the others.
class Locator {
 public:
  /// What device::locate says.
  Location locate(const void* pointer) noexcept;

 private:
  struct Allocation {
    std::uintptr_t begin;
    std::size_t bytes;
    Location location;
  };
  static constexpr unsigned most_known = 8;

  std::array<Allocation, most_known> known_;  ///< the newest takes the oldest's place
  unsigned found_ = 0;                        ///< how many there were
};

/// The loaded plugin, or nullptr with the reason in why_unavailable(). Loads it on first call.
Runtime* runtime() noexcept;

/// Why runtime() is null: a sentence for `gapless info`; empty when it is not.
std::string why_unavailable();

}  // namespace gapless::device

/// The one symbol a plugin exports. `interface_version` must equal gapless_device_interface_version, else it returns
/// null.
extern "C" gapless::device::Runtime* gapless_device_open(int interface_version);
inline constexpr int gapless_device_interface_version = 4;
