// Messages that gapless leaves to the library arrive as well: that gapless has packed them its statistics tell.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "support/statistics.hpp"

namespace gapless::test {

/// Where gapless is told to pack whatever it can, so many messages are packed in this process while this lives.
class PacksSomething {
 public:
  explicit PacksSomething(std::uint64_t least = 1) : least_(least) {}
  ~PacksSomething() {
    if (!is_everything_packed()) return;
    EXPECT_LT(0u, analyses()) << "no datatype was analysed";
    EXPECT_LE(before_ + least_, packed_messages()) << "messages were left to the library";
  }
  PacksSomething(const PacksSomething&) = delete;
  PacksSomething& operator=(const PacksSomething&) = delete;

 private:
  std::uint64_t least_, before_ = packed_messages();
};

}  // namespace gapless::test
