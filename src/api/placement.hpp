// Which engine moves a job's bytes, from where they are.
//
// GPU memory is reached in the caller's stream only, so the other side of such a job must be memory that the GPU
// addresses itself: a copy from or to ordinary host memory is not in stream order and may block.
#pragma once

#include "api/error.hpp"
#include "device/device.hpp"

namespace gapless::api {

struct Placement {
  bool on_gpu = false;
  bool is_bound = false;  ///< some byte is in the memory of `device` alone; managed memory may be moved by any GPU
  int device = -1;
};

/// What the bytes at one location ask for.
Placement placement_of(const device::Location& location) noexcept;

/// Lets `whole` serve `part` too; UNSUPPORTED if they are bound to different GPUs.
gapless_status merge(const Placement& part, Placement& whole) noexcept;

/// The placement of a movement between `one` and `other`, which the names are for; MEMORY_KIND if one is a GPU's and
/// the other ordinary.
gapless_status place(const device::Location& one, const device::Location& other, const char* name_of_one,
                     const char* name_of_other, Placement& placement) noexcept;

}  // namespace gapless::api
