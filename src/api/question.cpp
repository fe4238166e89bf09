// Questions about a type.
#include <algorithm>
#include <cstring>

#include "api/span.hpp"
#include "api/traffic.hpp"
#include "api/type.hpp"
#include "layout/algebra/facts.hpp"
#include "layout/text/text.hpp"

using namespace gapless;
using namespace gapless::api;

extern "C" {

gapless_status gapless_type_size(const gapless_type* type, int64_t* size) {
  return guard([&] {
    require(type, "type");
    require(size, "size");
    *size = type->datatype.size();
    return GAPLESS_SUCCESS;
  });
}

gapless_status gapless_type_extent(const gapless_type* type, int64_t* lower_bound, int64_t* extent) {
  return guard([&] {
    require(type, "type");
    require(lower_bound, "lower_bound");
    require(extent, "extent");
    *lower_bound = type->datatype.lower_bound;
    *extent = type->datatype.extent();
    return GAPLESS_SUCCESS;
  });
}

gapless_status gapless_type_true_extent(const gapless_type* type, int64_t* true_lower_bound, int64_t* true_extent) {
  return guard([&] {
    require(type, "type");
    require(true_lower_bound, "true_lower_bound");
    require(true_extent, "true_extent");
    *true_lower_bound = type->datatype.true_lower_bound;
    *true_extent = type->datatype.true_upper_bound - type->datatype.true_lower_bound;
    return GAPLESS_SUCCESS;
  });
}

gapless_status gapless_type_facts(const gapless_type* type, gapless_facts* facts) {
  return guard([&] {
    require(type, "type");
    require(facts, "facts");
    const layout::Facts found = layout::facts_of(*type->datatype.layout);
    facts->block_count = found.block_count;
    facts->shortest_block = found.shortest_block;
    facts->longest_block = found.longest_block;
    facts->alignment = found.alignment;
    facts->memory_bytes = static_cast<int64_t>(layout::memory_bytes(*type->datatype.layout));
    facts->injective = layout::is_injective(*type->datatype.layout, {1, 0}) ? 1 : 0;
    return GAPLESS_SUCCESS;
  });
}

gapless_status gapless_type_traffic(const gapless_type* type, int64_t count, gapless_traffic* traffic) {
  return guard([&] {
    require(type, "type");
    require(traffic, "traffic");
    require_not_negative(count, "count");
    Span span;
    if (!span_of(type->datatype, count, span)) {
      return fail(GAPLESS_ERROR_OVERFLOW, "%lld repetitions do not fit in 63 bits", static_cast<long long>(count));
    }
    const layout::Mode outer{count, type->datatype.extent()};
    traffic->lines_touched = lines_touched(*type->datatype.layout, outer, span.first, span.end);
    traffic->packed_bytes = span.size;
    return GAPLESS_SUCCESS;
  });
}

gapless_status gapless_type_describe(const gapless_type* type, char* buffer, size_t capacity, size_t* length) {
  return guard([&] {
    require(type, "type");
    if (capacity > 0) require(buffer, "buffer");
    const std::string line = layout::describe(*type->datatype.layout);
    if (capacity > 0) {
      const std::size_t written = std::min(line.size(), capacity - 1);
      std::memcpy(buffer, line.data(), written);
      buffer[written] = '\0';
    }
    if (length != nullptr) *length = line.size();
    return GAPLESS_SUCCESS;
  });
}

gapless_status gapless_type_equal(const gapless_type* a, const gapless_type* b, int* equal) {
  return guard([&] {
    require(a, "a");
    require(b, "b");
    require(equal, "equal");
    *equal = *a->datatype.layout == *b->datatype.layout ? 1 : 0;
    return GAPLESS_SUCCESS;
  });
}
}
