// One side of a message as the oracle sees it: the elements a (datatype, count) names, and memory that holds them
// between guard bytes. Nothing here asks MPI, or gapless, for anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/types/type.hpp"

namespace gapless::test::differential {

/// A datatype and a count, as a call is given them, and every element they name, in order.
struct Side {
  Type type;
  int count = 0;
  std::vector<Element> elements;
  std::size_t bytes = 0;

  Side() = default;
  Side(Type of, int repetitions);
  std::string text() const;
};

/// Does any byte lie in two elements? Such a side may be sent, not received.
bool overlaps(const Side& side);

/// The bytes of a message, in order, and which of them are padding of its elements: those may arrive or not.
struct Stream {
  std::vector<std::byte> bytes;
  std::vector<bool> is_padding;

  void append(const Stream& other);
  Stream part(std::size_t first, std::size_t length) const;
};

/// How memory differs from what the oracle wants.
struct Difference {
  std::size_t inside = 0;        ///< bytes of named elements that differ
  std::ptrdiff_t first = 0;      ///< the first of them, counted in the packed stream
  std::size_t outside = 0;       ///< bytes that no element names and that were written to
  std::ptrdiff_t first_out = 0;  ///< the first of them, from the buffer's address
};

/// Memory for a side, filled with bytes that `key` determines, with at least `room` bytes before and behind.
class Buffer {
 public:
  Buffer(const Side& side, std::uint64_t key, std::size_t room);

  std::byte* base() { return memory_.data() + base_; }
  /// The bytes that a message of this side consists of, as they were when the buffer was made.
  Stream stream() const;
  /// Against the buffer as it was, with `stream` unpacked into as many of the bytes that the side names.
  Difference compare(const Stream& stream) const;
  /// A number that stands for all bytes, guards included, but those that are padding here or in `stream`, and those of
  /// an element that `stream` ends inside of.
  std::uint64_t digest(const Stream& stream = {}) const;

 private:
  const Side* side_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> before_;
  std::size_t base_ = 0;
};

}  // namespace gapless::test::differential
