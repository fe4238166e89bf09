#include "support/types/typemap.hpp"

#include <algorithm>

namespace gapless::test {

std::size_t TypeMap::size() const {
  std::size_t total = 0;
  for (const Element& element : elements) total += element.size;
  return total;
}

void TypeMap::place(const TypeMap& child, MPI_Aint displacement) {
  for (const Element& element : child.elements)
    elements.push_back({element.displacement + displacement, element.size, element.basic});
}

std::vector<MPI_Aint> packed_offsets(const TypeMap& map, int count) {
  std::vector<MPI_Aint> offsets;
  offsets.reserve(map.size() * static_cast<std::size_t>(count));
  for (int repetition = 0; repetition < count; ++repetition) {
    for (const Element& element : map.elements) {
      const MPI_Aint first = repetition * map.extent + element.displacement;
      for (std::size_t byte = 0; byte < element.size; ++byte) offsets.push_back(first + static_cast<MPI_Aint>(byte));
    }
  }
  return offsets;
}

bool overlaps(std::span<const MPI_Aint> offsets) {
  std::vector<MPI_Aint> sorted(offsets.begin(), offsets.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

}  // namespace gapless::test
