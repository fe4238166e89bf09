// Random nested types, each made twice: through the C API and as the oracle's type map.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gapless/gapless.h"
#include "type_map.hpp"

struct FreeType {
  void operator()(gapless_type* type) const { gapless_type_free(type); }
};
using TypeHandle = std::unique_ptr<gapless_type, FreeType>;

/// The type a constructor makes; a failed one fails the test and gives null.
template <class Constructor, class... Arguments>
TypeHandle make(Constructor constructor, Arguments... arguments) {
  gapless_type* result = nullptr;
  EXPECT_EQ(constructor(arguments..., &result), GAPLESS_SUCCESS) << gapless_last_error();
  return TypeHandle(result);
}

inline TypeHandle parse(const char* text) {
  gapless_type* result = nullptr;
  EXPECT_EQ(gapless_type_parse(text, &result, nullptr, 0), GAPLESS_SUCCESS) << gapless_last_error();
  return TypeHandle(result);
}

struct TwiceMade {
  TypeHandle type;
  TypeMap map;
};

class RandomTypes {
 public:
  RandomTypes() : seed_(choose_seed()), engine_(seed_) { std::cout << "GAPLESS_TEST_SEED=" << seed_ << '\n'; }

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }

  std::vector<std::int64_t> list(std::size_t count, std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> values(count);
    for (auto& value : values) value = between(low, high);
    return values;
  }

  std::vector<unsigned char> bytes(std::size_t count) {
    std::vector<unsigned char> values(count);
    for (auto& value : values) value = static_cast<unsigned char>(between(0, 255));
    return values;
  }

  TwiceMade type() { return type(static_cast<int>(between(0, 3))); }

  TwiceMade type(int depth) {
    if (depth == 0) {
      const std::int64_t size = between(1, 9), extent = size + between(0, 3);
      return {make(gapless_type_named, size, extent), map_named(size, extent)};
    }
    TwiceMade child = type(depth - 1);
    switch (between(0, 6)) {
      case 0:
        return vector(child, false);
      case 1:
        return vector(child, true);
      case 2:
        return indexed(child, false);
      case 3:
        return indexed(child, true);
      case 4:
        return structure(child, type(depth - 1));
      case 5: {
        const std::int64_t lower = between(-8, 8), extent = between(-40, 200);
        TypeMap map = child.map;
        map.lower_bound = lower;
        map.upper_bound = lower + extent;
        map.has_markers = true;
        return {make(gapless_type_resized, child.type.get(), lower, extent), map};
      }
      default: {
        const std::int64_t count = between(0, 4);
        return {make(gapless_type_contiguous, count, child.type.get()), map_repeated(count, child.map)};
      }
    }
  }

 private:
  static unsigned choose_seed() {
    const char* text = std::getenv("GAPLESS_TEST_SEED");
    return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : std::random_device{}();
  }

  TwiceMade vector(const TwiceMade& child, bool in_bytes) {
    const std::int64_t count = between(0, 4), length = between(0, 3), stride = between(-5, 5) * (in_bytes ? 7 : 1);
    std::vector<std::int64_t> displacements;
    for (std::int64_t i = 0; i < count; ++i) displacements.push_back(i * stride * (in_bytes ? 1 : child.map.extent()));
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), length);
    return {make(in_bytes ? gapless_type_hvector : gapless_type_vector, count, length, stride, child.type.get()),
            map_blocks(lengths, displacements, child.map)};
  }

  TwiceMade indexed(const TwiceMade& child, bool in_bytes) {
    const std::size_t count = static_cast<std::size_t>(between(0, 5));
    const std::int64_t n = static_cast<std::int64_t>(count);
    const bool uniform = between(0, 1) != 0;
    const std::vector<std::int64_t> displacements = list(count, -6, 12);
    std::vector<std::int64_t> lengths = list(count, 0, 3), bytes = displacements;
    const std::int64_t length = between(0, 3);
    if (uniform) lengths.assign(count, length);
    if (!in_bytes) {
      for (auto& byte : bytes) byte *= child.map.extent();
    }
    TypeHandle type = uniform ? make(in_bytes ? gapless_type_hindexed_block : gapless_type_indexed_block, n, length,
                                     displacements.data(), child.type.get())
                              : make(in_bytes ? gapless_type_hindexed : gapless_type_indexed, n, lengths.data(),
                                     displacements.data(), child.type.get());
    return {std::move(type), map_blocks(lengths, bytes, child.map)};
  }

  TwiceMade structure(const TwiceMade& a, const TwiceMade& b) {
    const auto lengths = list(2, 0, 2), displacements = list(2, -30, 60);
    const gapless_type* children[] = {a.type.get(), b.type.get()};
    std::vector<Placed> all;
    for (std::int64_t j = 0; j < lengths[0]; ++j) all.push_back({displacements[0] + j * a.map.extent(), &a.map});
    for (std::int64_t j = 0; j < lengths[1]; ++j) all.push_back({displacements[1] + j * b.map.extent(), &b.map});
    return {make(gapless_type_struct, std::int64_t{2}, lengths.data(), displacements.data(), children), place(all)};
  }

  unsigned seed_;
  std::mt19937 engine_;
};
