// A job whose memory is only calculated with, for tests of plans.
#pragma once

#include <cstdint>

#include "pack/job.hpp"

namespace gapless::tests {

/// Memory far from 0, so that negative offsets stay addresses.
inline constexpr std::uintptr_t origin = std::uintptr_t{1} << 40, packed_origin = std::uintptr_t{1} << 44;

inline pack::Job job_of(const layout::LayoutPointer& layout, layout::Mode outer, layout::Offset begin,
                        layout::Offset end, pack::Direction direction) {
  return {layout.get(),
          outer,
          begin,
          end,
          direction,
          reinterpret_cast<void*>(origin),
          reinterpret_cast<void*>(packed_origin)};
}

}  // namespace gapless::tests
