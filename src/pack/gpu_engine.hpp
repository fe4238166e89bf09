// The engine that moves bytes between layouts in GPU memory and packed bytes, behind one interface. The plugin that
// does what a GPU is as memory (device::Runtime) does this as well; the tests' plugin runs the kernels' code on the
// CPU.
#pragma once

#include <span>
#include <string>

#include "device/runtime.hpp"
#include "pack/job.hpp"
#include "pack/pair_job.hpp"

namespace gapless::pack {

/// Which memory beside this GPU's own a job uses: an end that only this GPU's memory waits for is known a little
/// sooner, and copy engines are for the bus alone.
enum class Reach : std::uint8_t {
  this_gpu,
  beyond,       ///< some is written
  from_beyond,  ///< some is read, none is written
};

/// Jobs that an engine was given together and may still be at work on. Of the thread that submitted them.
struct Ticket {
  void* work = nullptr;       ///< the engine's own; null: nothing is under way
  std::uint64_t context = 0;  ///< that the work is in
  int device = -1;
  device::Status status = device::Status::ok;  ///< of jobs that are not under way
  bool ends_with_queue = false;                ///< what is issued behind the jobs delays the news of their end

  bool is_under_way() const noexcept { return work != nullptr; }
};

/// All functions are thread-safe, leave the calling thread's current device as it was, never throw and never write to
/// stdout. After a failure device::Runtime::last_error() describes it for the calling thread.
class GpuEngine {
 public:
  virtual ~GpuEngine() = default;

  /// Issues the jobs to `stream` (null: the legacy default stream); job.memory and job.packed must each be addressable
  /// by the GPU. Asynchronous: buffers must stay valid until the stream has passed this point, layouts only until the
  /// call returns.
  virtual device::Status run(std::span<const Job> jobs, int device, void* stream) noexcept = 0;
  /// Begins the jobs, after everything the program issued so far to the legacy default stream of `device`, by the way
  /// that has them done soonest. Buffers must stay valid until the ticket is not under way, layouts only until the call
  /// returns. Any number of tickets may be under way; each must be polled or waited for until it is not.
  virtual Ticket submit(std::span<const Job> jobs, int device, Reach reach) noexcept = 0;
  /// Begins one of several jobs in succession in the same way, so that the next may be issued behind this one.
  virtual Ticket submit_section(const Job& job, int device, Reach reach) noexcept = 0;
  /// Begins copies between two layouts in the same way; both memories must be addressable by `device`, and only its own
  /// is written.
  virtual Ticket submit(std::span<const PairJob> jobs, int device) noexcept = 0;
  /// Looks, without waiting, whether the jobs are done, or have failed; nothing uses their buffers any more then.
  virtual void poll(Ticket& ticket) noexcept = 0;
  /// Returns when the jobs are done, or have failed; the status is the ticket's.
  virtual device::Status wait(Ticket& ticket) noexcept = 0;
  device::Status run_and_wait(std::span<const Job> jobs, int device, Reach reach) noexcept {
    Ticket ticket = submit(jobs, device, reach);
    return ticket.is_under_way() ? wait(ticket) : ticket.status;
  }
  /// Issues a copy between two layouts to `stream`, as run() does; both memories must be addressable by `device`.
  virtual device::Status copy(const PairJob& job, int device, void* stream) noexcept = 0;

  /// Replaces what GAPLESS_GPU_ENGINE said, for tests and benchmarks; any other word than it knows: chosen per job.
  virtual void force_engine(const char* name) noexcept = 0;
};

/// The engine of the plugin behind device::runtime(), or nullptr with the reason in why_no_gpu_engine(). Looked for on
/// the first call.
GpuEngine* gpu_engine() noexcept;

/// A sentence; empty where there is an engine.
std::string why_no_gpu_engine();

}  // namespace gapless::pack

/// What a plugin exports beside gapless_device_open. `interface_version` must equal gapless_pack_interface_version,
/// else it returns null.
extern "C" gapless::pack::GpuEngine* gapless_pack_open(int interface_version);
inline constexpr int gapless_pack_interface_version = 5;
