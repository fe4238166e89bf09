#include "fabric/remote/group.hpp"

#include <algorithm>

namespace gapless::fabric {

void group(std::vector<Range>& blocks, const RegistrationCost& cost) {
  if (blocks.empty()) return;
  std::sort(blocks.begin(), blocks.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const auto page = static_cast<std::uintptr_t>(cost.page_bytes);
  std::size_t last = 0;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::uintptr_t pages_end = (blocks[last].end + page - 1) / page, next = blocks[i].begin / page;
    const double gap_ns = next > pages_end ? static_cast<double>(next - pages_end) * cost.page_ns : 0;
    if (gap_ns < cost.operation_ns) {
      blocks[last].end = std::max(blocks[last].end, blocks[i].end);
    } else {
      blocks[++last] = blocks[i];
    }
  }
  blocks.resize(last + 1);
}

}  // namespace gapless::fabric
