// The basic elements of a datatype in the order of its type map, as far as their sizes go: where a message that is too
// short for a whole datatype may end.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "layout/layout.hpp"

namespace gapless::layout {

class Elements;
/// Null: not known.
using ElementsPointer = std::shared_ptr<const Elements>;

class Elements {
 public:
  /// So many packed bytes of repetitions of a kind.
  struct Field {
    ElementsPointer kind;
    Offset bytes;
  };

  /// One basic element.
  explicit Elements(Offset size) : size_(size) {}
  /// Precondition: every kind is known.
  explicit Elements(std::vector<Field> fields) : fields_(std::move(fields)) {
    for (const Field& field : fields_) size_ += field.bytes;
  }

  bool is_basic() const noexcept { return fields_.empty(); }
  Offset size() const noexcept { return size_; }

  /// The most packed bytes, of `bytes` of any number of repetitions, that are whole elements.
  Offset whole(Offset bytes) const noexcept {
    if (size_ == 0) return bytes;
    const Offset repetitions = bytes - bytes % size_;
    Offset rest = bytes - repetitions, begin = repetitions;
    for (const Field& field : fields_) {
      if (rest < field.bytes) return begin + field.kind->whole(rest);
      rest -= field.bytes;
      begin += field.bytes;
    }
    return begin;
  }

 private:
  Offset size_ = 0;
  std::vector<Field> fields_;
};

}  // namespace gapless::layout
