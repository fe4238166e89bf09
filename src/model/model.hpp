// The machine profile: what starting and moving bytes costs, and what that predicts.
//
// Without a profile file a prediction is a sum: a cost or saving for starting, and one for each of the things moved.
// The built-in figures are medians of a few machines; only their ratios decide, so they serve others too. What a
// profile file has measured takes the place of these sums, memory by memory and pair by pair (measured.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/gpu.hpp"
#include "model/host.hpp"
#include "model/measured.hpp"

namespace gapless::model {

constexpr double per_ns(std::int64_t bytes_per_us) noexcept { return static_cast<double>(bytes_per_us) / 1000; }

/// What schemes for GPU memory are predicted from: those costs of the architecture's that they come to.
struct GpuProfile {
  double launch_and_wait_ns = static_cast<double>(gpu_costs.kernel[1].waited_ns);  ///< until the CPU sees a kernel done
  double copy_start_ns = static_cast<double>(gpu_costs.next_copy_ns);              ///< behind a kernel in its stream
  double pack_bytes_per_ns = per_ns(gpu_costs.kernel[0].bytes_per_us);             ///< kernel into GPU memory
  double mapped_write_bytes_per_ns = per_ns(gpu_costs.kernel[1].bytes_per_us);     ///< kernel writing host memory
  double mapped_read_bytes_per_ns = per_ns(gpu_costs.chunks.bytes_per_us);         ///< the way back
  double copy_bytes_per_ns = per_ns(gpu_costs.copy[1].bytes_per_us);               ///< copy engine, either way

  // Beside the GPU's own. Only ratios matter: bytes through the CPU are slower than the bus, page-locking is slower
  // yet.
  double cpu_copy_bytes_per_ns = 10;      ///< of segments, between page-locked and other host memory
  double page_locking_bytes_per_ns = 2;   ///< allocating and freeing page-locked memory
  double gpu_message_ns = 3'700;          ///< of a message through GPU memory a side, beyond one through the host's
  double host_message_bytes_per_ns = 20;  ///< of a message through host memory a side, in the MPI library

  // Between two GPUs of a node (H200, NVLink), and between two processes of one GPU, which has to change from one to
  // the other: 136 us, whatever the kernels, where copies over the bus change nothing.
  double peer_bytes_per_ns = 350;
  double change_process_ns = 136'000;
};

struct Profile {
  GpuProfile gpu;
  HostProfile host = mpich_on_host;
  Analysis analysis = analysis_on_host;
  const Measured* measured = nullptr;  ///< of a profile file; stays until the process ends
  Pair pair = Pair::same_node;         ///< what pairs of processes of this job are, as far as is known
};

/// The profile in use.
const Profile& profile() noexcept;
/// The same, to be written once, and only while no message is under way.
Profile& change_profile() noexcept;
/// How often it may have changed: what was predicted stays right until then.
std::uint32_t profile_changes() noexcept;

/// What one side saves by packing a noncontiguous message in host memory instead of leaving it to the library, and what
/// MPI_Pack or MPI_Unpack saves by our engine, in nanoseconds; negative where the library is faster. Thread-safe.
double message_saving_ns(const Amount& amount) noexcept;
/// What a receive saves by unpacking a message that comes in one piece: packed, or from contiguous memory.
double received_saving_ns(const Amount& amount) noexcept;
/// What one side saves, where the other side's buffer is contiguous.
double saving_to_contiguous_ns(const Amount& amount) noexcept;
/// What one side saves by slots instead of leaving a noncontiguous message to the library.
double slots_over_native_ns(const Amount& amount) noexcept;
/// What one side saves by slots instead of what is sooner, the library's own way or packing; negative where that is.
/// A request makes every way but the library's own cost more.
double slots_saving_ns(const Amount& amount, bool gets_request) noexcept;
/// The same two of a message through a ring. No table has those.
double ring_over_native_ns(const Amount& amount) noexcept;
double ring_saving_ns(const Amount& amount, bool gets_request) noexcept;
double pack_saving_ns(const Amount& amount) noexcept;

/// GPU kernel straight to mapped host memory, and from there.
double oneshot_pack_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
double oneshot_unpack_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
/// A copy of contiguous GPU memory over the bus.
double copy_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
/// GPU kernel in GPU memory and a copy over the bus.
double staged_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
/// GPU kernels to or from segments of page-locked memory, and copies of those by the CPU meanwhile.
double pipelined_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
/// GPU kernel in GPU memory, from or to which the MPI library moves the bytes.
double device_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
/// A whole message from GPU to GPU: packed in the memory of one, and unpacked from there by the other. Of a pair that
/// is of no GPUs, never.
double direct_message_ns(const GpuProfile& gpu, Pair pair, std::size_t bytes) noexcept;
/// What an MPI library that reads GPU memory takes for the bytes of a message from GPU to GPU.
double gpu_message_ns(const GpuProfile& gpu, Pair pair, std::size_t bytes) noexcept;
/// What the MPI library takes for a message through host memory, one side of it.
double host_message_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
/// Page-locked memory that is allocated for one message.
double page_locking_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;

}  // namespace gapless::model
