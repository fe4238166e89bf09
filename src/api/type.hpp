// What a gapless_type handle points to.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "api/error.hpp"
#include "layout/datatype/datatype.hpp"

/// Immutable but for the number of owners. Children are not kept: the datatype shares their layouts.
struct gapless_type {
  explicit gapless_type(gapless::layout::Datatype made) : datatype(std::move(made)) {}

  const gapless::layout::Datatype datatype;
  std::atomic<std::int64_t> owners{1};
};

namespace gapless::api {

using layout::Offset;

inline void require(const void* pointer, const char* name) {
  if (pointer == nullptr) throw std::invalid_argument(std::string(name) + " is null");
}

inline void require_not_negative(std::int64_t value, const char* name) {
  if (value < 0) throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", must be >= 0");
}

}  // namespace gapless::api
