// Making and ending types. All meaning is in layout/datatype/datatype.hpp; here C arguments become spans and
// references, and whatever is wrong with them is told apart before they are looked at.
#include "api/type.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "layout/text/text.hpp"

namespace gapless::api {
namespace {

template <class Make>
gapless_status construct(gapless_type** result, Make&& make) noexcept {
  return guard([&] {
    require(result, "result");
    *result = new gapless_type(make());
    return GAPLESS_SUCCESS;
  });
}

const layout::Datatype& datatype_of(const gapless_type* type, const char* name = "child") {
  require(type, name);
  return type->datatype;
}

template <class Value>
std::span<const Value> list(const Value* values, std::int64_t count, const char* name) {
  require_not_negative(count, "count");
  if (count > 0) require(values, name);
  return {values, static_cast<std::size_t>(count)};
}

template <class Value>
std::span<const Value> per_dimension(const Value* values, int dimensions, const char* name) {
  if (dimensions < 1) throw std::invalid_argument("dimensions is " + std::to_string(dimensions) + ", must be >= 1");
  return list(values, dimensions, name);
}

layout::ArrayOrder to_order(int order) {
  switch (order) {
    case GAPLESS_ORDER_C:
      return layout::ArrayOrder::c;
    case GAPLESS_ORDER_FORTRAN:
      return layout::ArrayOrder::fortran;
  }
  throw std::invalid_argument("order is neither GAPLESS_ORDER_C nor GAPLESS_ORDER_FORTRAN");
}

layout::Distribution to_distribution(int distribution) {
  switch (distribution) {
    case GAPLESS_DISTRIBUTE_NONE:
      return layout::Distribution::none;
    case GAPLESS_DISTRIBUTE_BLOCK:
      return layout::Distribution::block;
    case GAPLESS_DISTRIBUTE_CYCLIC:
      return layout::Distribution::cyclic;
  }
  throw std::invalid_argument("a distribution is none of GAPLESS_DISTRIBUTE_*");
}

layout::Datatype make_named(std::int64_t size, std::int64_t extent) {
  require_not_negative(size, "size");
  if (extent < size) throw std::invalid_argument("extent is less than size");
  return layout::named(size, extent);
}

layout::Datatype make_struct(std::int64_t count, const std::int64_t* block_lengths, const std::int64_t* displacements,
                             const gapless_type* const* children) {
  std::vector<layout::Datatype> fields;
  for (const gapless_type* child : list(children, count, "children")) {
    fields.push_back(datatype_of(child, "one of children"));
  }
  return layout::structure(list(block_lengths, count, "block_lengths"),
                           list(displacements, count, "displacements_bytes"), fields);
}

void copy_text(const char* text, char* buffer, std::size_t capacity) noexcept {
  if (buffer == nullptr || capacity == 0) return;
  const std::size_t length = std::min(std::strlen(text), capacity - 1);
  std::memcpy(buffer, text, length);
  buffer[length] = '\0';
}

}  // namespace
}  // namespace gapless::api

using namespace gapless;
using namespace gapless::api;

extern "C" {

gapless_status gapless_type_named(int64_t size, int64_t extent, gapless_type** result) {
  return construct(result, [&] { return make_named(size, extent); });
}

gapless_status gapless_type_contiguous(int64_t count, const gapless_type* child, gapless_type** result) {
  return construct(result, [&] { return layout::contiguous(count, datatype_of(child)); });
}

gapless_status gapless_type_vector(int64_t count, int64_t block_length, int64_t stride, const gapless_type* child,
                                   gapless_type** result) {
  return construct(result, [&] { return layout::vector(count, block_length, stride, datatype_of(child)); });
}

gapless_status gapless_type_hvector(int64_t count, int64_t block_length, int64_t stride_bytes,
                                    const gapless_type* child, gapless_type** result) {
  return construct(result, [&] { return layout::hvector(count, block_length, stride_bytes, datatype_of(child)); });
}

gapless_status gapless_type_indexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements,
                                    const gapless_type* child, gapless_type** result) {
  return construct(result, [&] {
    return layout::indexed(list(block_lengths, count, "block_lengths"), list(displacements, count, "displacements"),
                           datatype_of(child));
  });
}

gapless_status gapless_type_hindexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements_bytes,
                                     const gapless_type* child, gapless_type** result) {
  return construct(result, [&] {
    return layout::hindexed(list(block_lengths, count, "block_lengths"),
                            list(displacements_bytes, count, "displacements_bytes"), datatype_of(child));
  });
}

gapless_status gapless_type_indexed_block(int64_t count, int64_t block_length, const int64_t* displacements,
                                          const gapless_type* child, gapless_type** result) {
  return construct(result, [&] {
    return layout::indexed_block(block_length, list(displacements, count, "displacements"), datatype_of(child));
  });
}

gapless_status gapless_type_hindexed_block(int64_t count, int64_t block_length, const int64_t* displacements_bytes,
                                           const gapless_type* child, gapless_type** result) {
  return construct(result, [&] {
    return layout::hindexed_block(block_length, list(displacements_bytes, count, "displacements_bytes"),
                                  datatype_of(child));
  });
}

gapless_status gapless_type_struct(int64_t count, const int64_t* block_lengths, const int64_t* displacements_bytes,
                                   const gapless_type* const* children, gapless_type** result) {
  return construct(result, [&] { return make_struct(count, block_lengths, displacements_bytes, children); });
}

gapless_status gapless_type_subarray(int dimensions, const int64_t* sizes, const int64_t* subsizes,
                                     const int64_t* starts, int order, const gapless_type* child,
                                     gapless_type** result) {
  return construct(result, [&] {
    return layout::subarray(per_dimension(sizes, dimensions, "sizes"), per_dimension(subsizes, dimensions, "subsizes"),
                            per_dimension(starts, dimensions, "starts"), to_order(order), datatype_of(child));
  });
}

gapless_status gapless_type_darray(int64_t process_count, int64_t rank, int dimensions, const int64_t* global_sizes,
                                   const int* distributions, const int64_t* distribution_arguments,
                                   const int64_t* process_sizes, int order, const gapless_type* child,
                                   gapless_type** result) {
  return construct(result, [&] {
    std::vector<layout::Distribution> kinds;
    for (int kind : per_dimension(distributions, dimensions, "distributions")) {
      kinds.push_back(to_distribution(kind));
    }
    return layout::darray(process_count, rank, per_dimension(global_sizes, dimensions, "global_sizes"), kinds,
                          per_dimension(distribution_arguments, dimensions, "distribution_arguments"),
                          per_dimension(process_sizes, dimensions, "process_sizes"), to_order(order),
                          datatype_of(child));
  });
}

gapless_status gapless_type_resized(const gapless_type* child, int64_t lower_bound, int64_t extent,
                                    gapless_type** result) {
  return construct(result, [&] { return layout::resized(datatype_of(child), lower_bound, extent); });
}

gapless_status gapless_type_parse(const char* text, gapless_type** result, char* error, size_t error_capacity) {
  const gapless_status status = construct(result, [&] {
    require(text, "text");
    return layout::parse_datatype(text);
  });
  if (status != GAPLESS_SUCCESS) copy_text(gapless_last_error(), error, error_capacity);
  return status;
}

gapless_status gapless_type_retain(gapless_type* type) {
  return guard([&] {
    require(type, "type");
    type->owners.fetch_add(1, std::memory_order_relaxed);
    return GAPLESS_SUCCESS;
  });
}

void gapless_type_free(gapless_type* type) {
  if (type != nullptr && type->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete type;
}
}
