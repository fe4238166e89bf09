// What a thread planned for its last single jobs: applications send the same buffers in every step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "pack/gpu/batch/fused.hpp"
#include "pack/job.hpp"

namespace gapless::pack::gpu {

inline bool is_same(const Job& a, const Job& b) noexcept {
  return a.layout == b.layout && a.outer == b.outer && a.begin == b.begin && a.end == b.end &&
         a.direction == b.direction && a.memory == b.memory && a.packed == b.packed;
}

/// What is planned of one job is filled in by whoever first needs it.
struct CachedJob {
  std::optional<Launch> launch;   ///< stays empty if it uses a descriptor, which must not outlive its layout here
  std::optional<SmallNest> nest;  ///< for a resident kernel; none if the job is no small nest
  bool is_nest_known = false;
};

class JobCache {
 public:
  /// The job's entry, empty if it was another's until now: of the same planner, for the same device.
  CachedJob& at(const Job& job, int device, std::uint64_t planner) noexcept {
    Entry& entry = entries_[place(job)];
    const bool is_it = is_same(entry.job, job) && entry.device == device && entry.planner == planner;
    if (!is_it || entry.layout.expired()) entry = {{}, job, job.layout->weak_from_this(), planner, device};
    return entry.cached;
  }

 private:
  struct Entry {
    CachedJob cached;
    Job job{};
    std::weak_ptr<const Layout> layout;  ///< another layout may have its address by now
    std::uint64_t planner = 0;
    int device = -1;
  };

  static std::size_t place(const Job& job) noexcept {
    const auto mix = reinterpret_cast<std::uintptr_t>(job.memory) + reinterpret_cast<std::uintptr_t>(job.packed) * 3;
    return (mix ^ mix >> 8 ^ mix >> 16) / 16 % count;
  }

  static constexpr std::size_t count = 16;
  std::array<Entry, count> entries_;
};

}  // namespace gapless::pack::gpu
