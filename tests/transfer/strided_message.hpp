// A message between two places of one simulated GPU, both with gaps: every byte that was sent is known by its place.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "layout/algebra/facts.hpp"
#include "layout/datatype/datatype.hpp"
#include "simulated_gpu.hpp"
#include "transfer/message.hpp"

namespace gapless::tests {

using Bytes = std::vector<unsigned char>;

constexpr layout::Offset block = 48, stride = 80, blocks = 1000;
constexpr std::size_t packed_bytes = block * blocks;

class StridedMessage : public testing::Test {
 protected:
  /// What is sent has at byte i value(i), and what is received into has zeros.
  static unsigned char value(std::size_t i) { return static_cast<unsigned char>(i * 2654435761u >> 23); }

  ~StridedMessage() override {
    gpu_.release(out_);
    gpu_.release(in_);
  }

  std::size_t extent() const { return static_cast<std::size_t>(type_.extent()); }
  /// Called once the test has set up what its process needs.
  void make_places() {
    out_ = make(true);
    in_ = make(false);
  }
  Bytes sent_bytes() const {
    Bytes bytes(extent());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(i);
    return bytes;
  }
  void* make(bool is_filled) {
    const Bytes bytes = is_filled ? sent_bytes() : Bytes(extent());
    void* const memory = gpu_.allocate(0, bytes.size());
    EXPECT_EQ(0, gpu_.write(memory, bytes.data(), bytes.size()));
    return memory;
  }
  transfer::Buffer buffer(void* memory) const { return {&described_, 1, memory, {device::MemoryKind::device, 0}}; }
  /// The first `bytes` packed bytes have come, and nothing else has changed.
  void expect_arrived(std::size_t bytes) {
    Bytes found(extent());
    ASSERT_EQ(0, gpu_.read(found.data(), in_, found.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t within = i % stride, packed = i / stride * block + within;
      const bool has_come = within < block && packed < bytes;
      ASSERT_EQ(has_come ? value(i) : 0, found[i]) << i;
    }
  }

  SimulatedGpu gpu_;
  layout::Datatype type_ = layout::vector(blocks, block, stride, layout::named(1, 1));
  transfer::Described described_{type_.layout, layout::facts_of(*type_.layout), type_.extent()};
  void *out_ = nullptr, *in_ = nullptr;
};

}  // namespace gapless::tests
