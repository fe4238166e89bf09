// Which blocks are registered together: optimistic group registration (Wu et al., 2003, 5.4.1).
//
// A registration costs a fixed time and a time a page. Two blocks share one where the pages of the gap between them
// cost less than another registration. The gap may be no memory at all; then the group's registration is refused, and
// the blocks are registered by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gapless::fabric {

/// Addresses [begin, end).
struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
  friend bool operator==(const Range&, const Range&) = default;
};

struct RegistrationCost {
  double operation_ns;  ///< registering and deregistering, whatever the size
  double page_ns;       ///< for each page
  std::size_t page_bytes = 4096;
};

/// Sorts `blocks`, and merges those that are cheaper together: in place.
void group(std::vector<Range>& blocks, const RegistrationCost& cost);

}  // namespace gapless::fabric
