#include "transfer/rdma/memory/description.hpp"

#include <cstring>
#include <stdexcept>

#include "layout/algebra/canonical.hpp"

namespace gapless::transfer::rdma {
namespace {

using layout::Core;
using layout::Layout;
using layout::LayoutPointer;
using layout::Offset;

constexpr int deepest = 64;

// Numbers of 8 bytes: core, base, number of modes, the modes, and what the core is made of. Children follow.
class Writer {
 public:
  void put(const Layout& layout) {
    put(static_cast<Offset>(layout.core));
    put(layout.base);
    put(static_cast<Offset>(layout.modes.size()));
    for (const layout::Mode& mode : layout.modes) {
      put(mode.count);
      put(mode.stride);
    }
    switch (layout.core) {
      case Core::block:
        return put(layout.length);
      case Core::index:
        put(layout.offsets);
        return put(*layout.child);
      case Core::segments:
        put(layout.offsets);
        return put(layout.ends);
      case Core::sum:
        put(static_cast<Offset>(layout.parts.size()));
        for (const layout::Part& part : layout.parts) put(*part.layout);
    }
  }

  std::vector<std::byte> bytes;

 private:
  void put(Offset number) {
    const auto data = std::as_bytes(std::span(&number, 1));
    bytes.insert(bytes.end(), data.begin(), data.end());
  }
  void put(const layout::OffsetTable& table) {
    put(static_cast<Offset>(table.size()));
    for (std::size_t i = 0; i < table.size(); ++i) put(table[i]);
  }
};

[[noreturn]] void refuse() { throw std::invalid_argument("not the description of a layout"); }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool is_at_end() const noexcept { return rest_.empty(); }

  LayoutPointer layout(int depth = 0) {
    if (depth > deepest) refuse();
    const Offset core = number(), base = number();
    std::vector<layout::Mode> modes;
    for (std::size_t left = length(); left > 0; --left) {
      const Offset count = number(), stride = number();
      if (count < 2) refuse();
      modes.push_back({count, stride});
    }
    LayoutPointer result = core_of(core, depth);
    for (const layout::Mode& mode : modes) result = layout::repeat(result, mode.count, mode.stride);
    return layout::shift(result, base);
  }

 private:
  LayoutPointer core_of(Offset core, int depth) {
    switch (core) {
      case static_cast<Offset>(Core::block):
        return layout::block(0, number());
      case static_cast<Offset>(Core::index): {
        const auto offsets = numbers();
        return layout::index(layout(depth + 1), offsets);
      }
      case static_cast<Offset>(Core::segments):
        return segments();
      case static_cast<Offset>(Core::sum): {
        std::vector<LayoutPointer> terms;
        for (std::size_t left = length(); left > 0; --left) terms.push_back(layout(depth + 1));
        return layout::concatenate(terms);
      }
      default:
        refuse();
    }
  }

  LayoutPointer segments() {
    const auto offsets = numbers(), ends = numbers();
    if (offsets.size() != ends.size()) refuse();
    std::vector<layout::Segment> runs;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const Offset begin = i == 0 ? 0 : ends[i - 1];
      if (ends[i] <= begin) refuse();
      runs.push_back({offsets[i], ends[i] - begin});
    }
    return layout::segments(runs);
  }

  Offset number() {
    Offset number;
    if (rest_.size() < sizeof number) refuse();
    std::memcpy(&number, rest_.data(), sizeof number);
    rest_ = rest_.subspan(sizeof number);
    return number;
  }
  /// The length of a list, whose entries take a number each at least.
  std::size_t length() {
    const Offset length = number();
    if (length < 0 || static_cast<std::size_t>(length) > rest_.size() / sizeof length) refuse();
    return static_cast<std::size_t>(length);
  }
  std::vector<Offset> numbers() {
    std::vector<Offset> list(length());
    for (Offset& entry : list) entry = number();
    return list;
  }

  std::span<const std::byte> rest_;
};

}  // namespace

std::vector<std::byte> describe(const Layout& layout) {
  Writer writer;
  writer.put(layout);
  return std::move(writer.bytes);
}

LayoutPointer understand(std::span<const std::byte> description) noexcept try {
  Reader reader(description);
  LayoutPointer layout = reader.layout();
  return reader.is_at_end() ? layout : nullptr;
} catch (const std::exception&) {
  return nullptr;
}

}  // namespace gapless::transfer::rdma
