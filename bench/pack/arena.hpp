// The GPU memory all cases work in, and the check that a contestant moves the right bytes and no others.
//
// Byte x of the arena is a fixed random function of x, so that a case needs no filling of its own: packing leaves the
// memory as it was, and unpacking what was packed restores it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contestants/contestant.hpp"
#include "gpu.hpp"
#include "workload.hpp"

namespace gapless::bench {

class Arena {
 public:
  /// `span` bytes of memory that layouts may reach into, `packed` bytes for packed data.
  Arena(std::size_t span, std::size_t packed);

  bool holds(const Workload& work) const;
  /// Copies of the work in different memory, so many that going round them finds nothing in the cache, as far as there
  /// is room: work below some 512 KiB stays in the cache in part.
  std::vector<Spot> spots(const Workload& work) const;
  /// One copy, again and again: whatever fits stays in the cache.
  std::vector<Spot> one_spot() const { return {{memory_.data(), packed_.data()}}; }
  /// As spots(), but with packed data in host memory that the GPU addresses.
  std::vector<Spot> spots_with(const Workload& work, const Memory& packed) const;

  /// For each contestant what it gets wrong; empty if it packs and unpacks exactly the oracle's bytes.
  std::vector<std::string> faults(const Workload& work, const std::vector<const Contestant*>& contestants,
                                  const std::vector<Spot>& spots) const;
  /// Ends the program with the first contestant that gets anything wrong.
  void verify(const Workload& work, const std::vector<const Contestant*>& contestants,
              const std::vector<Spot>& spots) const;

  /// Seconds of a plain copy of `bytes` by the fastest means known, cold like spots().
  double copy_seconds(std::int64_t bytes, const Effort& effort) const;

 private:
  Memory memory_;
  Memory image_;  ///< what memory should be after unpacking; elsewhere a second arena for copies
  Memory packed_;
  std::size_t cache_bytes_;
};

}  // namespace gapless::bench
