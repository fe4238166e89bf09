// The machine profile: what starting and moving bytes costs, and what that predicts.
//
// A prediction is a sum: a cost or saving for starting, and one for each of the things moved. The built-in figures are
// medians of a few machines; only their ratios decide, so they serve others too.
#pragma once

#include <cstddef>

#include "model/host.hpp"

namespace gapless::model {

struct GpuProfile {
  double launch_and_wait_ns = 8300;       ///< one kernel launch until the CPU sees it done
  double copy_start_ns = 3000;            ///< a copy issued behind a kernel on the same stream
  double pack_bytes_per_ns = 800;         ///< kernel into GPU memory, typical blocks
  double mapped_write_bytes_per_ns = 52;  ///< kernel writing host memory through the bus
  double mapped_read_bytes_per_ns = 54;   ///< the way back, in chunks where it is long
  double copy_bytes_per_ns = 55;          ///< copy engine, pinned host memory, either way
};

struct Profile {
  GpuProfile gpu;
  HostProfile host = mpich_on_host;
  Analysis analysis = analysis_on_host;
};

/// The profile in use. Written only while no message is under way.
Profile& profile() noexcept;

enum class Side { sender, receiver };

/// GPU kernel straight to or from mapped host memory.
double oneshot_ns(const GpuProfile& gpu, Side side, std::size_t bytes) noexcept;
/// A copy of contiguous GPU memory over the bus.
double copy_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;
/// GPU kernel in GPU memory and a copy over the bus.
double staged_ns(const GpuProfile& gpu, std::size_t bytes) noexcept;

}  // namespace gapless::model
