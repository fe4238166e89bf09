// The GPU as memory: what a plugin does with contexts, streams and memory. Kernels are behind pack::GpuEngine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/location.hpp"

namespace gapless::device {

/// Memory that GPUs of other processes of the node reach, as those are told of it: one allocation, and who has it.
/// Plain bytes.
struct MemoryHandle {
  /// Stands for a GPU's number where the memory is page-locked memory of the host (device/shared_pages.hpp).
  static constexpr std::uint64_t host = ~std::uint64_t{0};

  std::array<unsigned char, 64> driver{};  ///< what opens it
  std::uint64_t number = 0;                ///< of the allocation; the owner's process gives none twice
  std::uint64_t base = 0;                  ///< its address there
  std::uint64_t bytes = 0;
  std::uint64_t free_bytes = 0;  ///< of the owner's GPU when the handle was made
  std::int64_t process = 0;      ///< the owner's
  std::uint64_t gpu = 0;         ///< Runtime::gpu_number() of where it is, or `host`

  bool is_on_host() const noexcept { return gpu == host; }
  bool contains(std::uint64_t address) const noexcept { return address - base < bytes; }
  bool contains(std::uint64_t first, std::uint64_t length) const noexcept {
    return contains(first) && length <= bytes - (first - base);
  }
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
  /// Says whether all work in the stream is done, which after a failure it never is.
  virtual Status query(int device, void* stream, bool& is_idle) noexcept = 0;
  /// Makes the GPU current for the calling thread, which is gapless's own, for good; later calls of the thread do
  /// nothing. A thread that has chosen no GPU has none again after each call, and each call would choose anew.
  virtual void adopt(int device) noexcept = 0;

  /// Lets kernels of `device` address the memory of `peer`; unsupported where the machine cannot. Costs nothing once it
  /// is done.
  virtual Status enable_peer(int device, int peer) noexcept = 0;

  /// Tells the GPUs of a node apart, the same number in every process, whichever GPUs that sees; 0 where it is not
  /// known. Slow.
  virtual std::uint64_t gpu_number(int device) noexcept = 0;

  /// The number of the allocation that the address lies in; 0 where there is none. None is given twice, so a number
  /// tells whether an allocation is still what it was. Takes some 200 ns.
  virtual std::uint64_t allocation_number(const void* address) noexcept = 0;
  /// Names the allocation that the address lies in; unsupported for memory of which other processes cannot be told.
  virtual Status export_memory(const void* address, MemoryHandle& handle) noexcept = 0;
  /// Maps another process's allocation for kernels and copies of `device`; takes milliseconds. The owner's memory is
  /// not free as long as it is mapped here, even once the owner has freed it.
  virtual Status open_memory(const MemoryHandle& handle, int device, void** base) noexcept = 0;
  /// Unmaps it. Nothing may be under way there.
  virtual void close_memory(int device, void* base) noexcept = 0;

  /// Page-locks memory of the host, which kernels and copies of every GPU address from then on where the CPU does.
  /// Takes milliseconds. It belongs to the context in which the calling thread uses the GPU. Preconditions: whole
  /// pages, which stay mapped until unlock_pages().
  virtual Status lock_pages(void* pages, std::size_t bytes, int device) noexcept = 0;
  /// Precondition: their context is there, and nothing is under way in them.
  virtual void unlock_pages(void* pages, int device) noexcept = 0;

  /// A file descriptor (dma-buf) by which other devices of the machine reach GPU memory, for the caller to close;
  /// unsupported where there is none. Preconditions: whole pages of the host, of one allocation.
  virtual Status export_to_devices(const void* address, std::size_t bytes, int device, int* descriptor) noexcept = 0;
  /// What other devices have written to the GPU's memory by now, its work sees from now on.
  virtual Status flush_writes_of_devices(int device) noexcept = 0;
};

}  // namespace gapless::device

/// What a plugin exports. `interface_version` must equal gapless_device_interface_version, else it returns null.
extern "C" gapless::device::Runtime* gapless_device_open(int interface_version);
inline constexpr int gapless_device_interface_version = 11;
