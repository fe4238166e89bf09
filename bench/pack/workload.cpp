#include "workload.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "fail.hpp"

namespace gapless::bench {
namespace {

Type checked(gapless_status status, gapless_type* type, const std::string& what) {
  check(status, what.c_str());
  return Type(type);
}

std::string text_of(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (const std::int64_t value : values) text += (text.size() > 1 ? "," : "") + std::to_string(value);
  return text + "]";
}

/// The basic type of that many bytes; wider elements are made of doubles.
std::string element_name(std::int64_t bytes) {
  switch (bytes) {
    case 1:
      return "byte";
    case 2:
      return "short";
    case 4:
      return "float";
    case 8:
      return "double";
    default:
      return "contiguous(" + std::to_string(bytes / 8) + ", double)";
  }
}

/// What a program would most likely call it: libraries differ in whether they look through the basic type.
std::int64_t widest_element(std::int64_t numbers) { return std::min<std::int64_t>(8, numbers & -numbers); }

std::string shape_of(const std::vector<std::int64_t>& values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : "x") + std::to_string(value);
  return text;
}

void set_type(Workload& work, const std::string& text) {
  work.type = parse_type(text);
  work.text = [text] { return text; };
}

using List = std::vector<std::int64_t>;

/// Long lists are not parsed.
void set_indexed_type(Workload& work, const List& lengths, const List& displacements, const std::string& child) {
  const Type element = parse_type(child);
  gapless_type* type = nullptr;
  const auto count = static_cast<std::int64_t>(displacements.size());
  const gapless_status status = gapless_type_indexed(count, lengths.data(), displacements.data(), element.get(), &type);
  work.type = checked(status, type, work.name);
  work.text = [=] { return "indexed(" + text_of(lengths) + ", " + text_of(displacements) + ", " + child + ")"; };
}

void set_indexed_block_type(Workload& work, std::int64_t length, const List& displacements, const std::string& child) {
  const Type element = parse_type(child);
  gapless_type* type = nullptr;
  const auto count = static_cast<std::int64_t>(displacements.size());
  const gapless_status status = gapless_type_indexed_block(count, length, displacements.data(), element.get(), &type);
  work.type = checked(status, type, work.name);
  work.text = [=] {
    return "indexed_block(" + std::to_string(length) + ", " + text_of(displacements) + ", " + child + ")";
  };
}

UniformList list_of(const Blocks& blocks) {
  UniformList list{blocks.length, {}};
  for (const std::int64_t offset : blocks.offsets) {
    list.offsets.push_back(static_cast<std::uint32_t>(offset / blocks.length));
  }
  return list;
}

}  // namespace

Type parse_type(const std::string& text) {
  gapless_type* type = nullptr;
  const gapless_status status = gapless_type_parse(text.c_str(), &type, nullptr, 0);
  return checked(status, type, text);
}

std::int64_t Blocks::packed_bytes() const {
  if (lengths.empty()) return length * static_cast<std::int64_t>(offsets.size());
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

std::int64_t Blocks::span() const {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) end = std::max(end, offsets[i] + length_of(i));
  return end;
}

std::int64_t Blocks::lines_touched() const {
  std::vector<std::uint64_t> touched(static_cast<std::size_t>(span() / 64 / 64 + 1));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t last = (offsets[i] + length_of(i) - 1) / 64;
    for (std::int64_t line = offsets[i] / 64; line <= last; ++line) {
      touched[static_cast<std::size_t>(line / 64)] |= std::uint64_t{1} << (line % 64);
    }
  }
  std::int64_t lines = 0;
  for (const std::uint64_t word : touched) lines += std::popcount(word);
  return lines;
}

std::int64_t Workload::traffic() const {
  const auto listed = static_cast<std::int64_t>(blocks.offsets.size());
  std::int64_t description = 0;
  if (std::holds_alternative<UniformList>(hand)) description = 4 * listed;
  if (std::holds_alternative<RaggedList>(hand)) description = 8 * listed;
  return 64 * blocks.lines_touched() + description + blocks.packed_bytes();
}

Workload contiguous(std::int64_t bytes) {
  Workload work;
  work.family = work.name = "contiguous";
  const std::int64_t element = widest_element(bytes);
  set_type(work, "contiguous(" + std::to_string(bytes / element) + ", " + element_name(element) + ")");
  work.blocks = {{0}, bytes, {}};
  return work;
}

Workload vector(std::int64_t count, std::int64_t length, std::int64_t stride) {
  Workload work;
  work.family = "2-D";
  work.name = "vector, " + std::to_string(length) + " B every " + std::to_string(stride) + " B";
  const std::int64_t element = widest_element(length | stride);
  set_type(work, "vector(" + std::to_string(count) + ", " + std::to_string(length / element) + ", " +
                     std::to_string(stride / element) + ", " + element_name(element) + ")");
  work.blocks.length = length;
  for (std::int64_t i = 0; i < count; ++i) work.blocks.offsets.push_back(i * stride);
  work.hand = Box{0, length, {count, 1, 1}, {stride, 0, 0}};
  return work;
}

Workload subarray(const std::string& family, const std::vector<std::int64_t>& size,
                  const std::vector<std::int64_t>& sub, const std::vector<std::int64_t>& start, std::int64_t element) {
  Workload work;
  work.family = family;
  work.name = "subarray " + shape_of(sub) + " of " + shape_of(size) + ", " + std::to_string(element) + " B elements";
  set_type(work, "subarray(" + text_of(size) + ", " + text_of(sub) + ", " + text_of(start) + ", c, " +
                     element_name(element) + ")");
  // Four dimensions, outermost first; missing ones have one element.
  const std::size_t missing = 4 - size.size();
  std::int64_t n[4] = {1, 1, 1, 1}, m[4] = {1, 1, 1, 1}, s[4] = {0, 0, 0, 0};
  for (std::size_t i = 0; i < size.size(); ++i) {
    n[missing + i] = size[i];
    m[missing + i] = sub[i];
    s[missing + i] = start[i];
  }
  const std::int64_t row = n[3] * element, plane = n[2] * row, cube = n[1] * plane;
  work.blocks.length = m[3] * element;
  for (std::int64_t i = 0; i < m[0]; ++i) {
    for (std::int64_t j = 0; j < m[1]; ++j) {
      for (std::int64_t k = 0; k < m[2]; ++k) {
        work.blocks.offsets.push_back((s[0] + i) * cube + (s[1] + j) * plane + (s[2] + k) * row + s[3] * element);
      }
    }
  }
  work.hand = Box{work.blocks.offsets.front(), work.blocks.length, {m[2], m[1], m[0]}, {row, plane, cube}};
  return work;
}

Workload transposed(std::int64_t rows, std::int64_t columns, std::int64_t element) {
  Workload work;
  work.family = "transposed";
  work.name = "transposed " + shape_of({rows, columns}) + ", " + std::to_string(element) + " B elements";
  const std::string matrix_column =
      "vector(" + std::to_string(rows) + ", 1, " + std::to_string(columns) + ", " + element_name(element) + ")";
  set_type(work, "hvector(" + std::to_string(columns) + ", 1, " + std::to_string(element) + ", " + matrix_column + ")");
  work.blocks.length = element;
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = 0; row < rows; ++row) work.blocks.offsets.push_back((row * columns + column) * element);
  }
  work.hand = Transposed{rows, columns, element, columns * element};
  return work;
}

Workload indexed_block(std::int64_t count, std::int64_t length, std::int64_t gap_limit) {
  Workload work;
  work.family = "uniform index";
  work.name = "indexed_block, " + std::to_string(length) + " B, random gaps";
  work.blocks.length = length;
  std::mt19937_64 random(1);
  const std::int64_t element = widest_element(length), elements = length / element;
  List displacements;
  for (std::int64_t i = 0, at = 0; i < count; ++i, at += 2 + static_cast<std::int64_t>(random() % (gap_limit - 1))) {
    displacements.push_back(at * elements);
    work.blocks.offsets.push_back(at * length);
  }
  set_indexed_block_type(work, elements, displacements, element_name(element));
  work.hand = list_of(work.blocks);
  return work;
}

Workload vector_as_list(std::int64_t count, std::int64_t length, std::int64_t stride, bool with_lengths) {
  Workload work = vector(count, length, stride);
  work.family = "list of a vector";
  work.name = (with_lengths ? "indexed, " : "indexed_block, ") + work.name.substr(8);
  const std::int64_t element = widest_element(length | stride);
  List displacements;
  for (const std::int64_t offset : work.blocks.offsets) displacements.push_back(offset / element);
  if (with_lengths) {
    const List lengths(static_cast<std::size_t>(count), length / element);
    set_indexed_type(work, lengths, displacements, element_name(element));
  } else {
    set_indexed_block_type(work, length / element, displacements, element_name(element));
  }
  return work;
}

Workload ragged(std::int64_t count, std::int64_t longest) {
  Workload work;
  work.family = "ragged";
  work.name = "indexed, 4 to " + std::to_string(longest) + " B, random gaps";
  RaggedList list{{}, {0}};
  List lengths, displacements;
  std::mt19937_64 random(2);
  for (std::int64_t i = 0, at = 0; i < count; ++i) {
    const auto words = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest / 4));
    lengths.push_back(words);
    displacements.push_back(at);
    work.blocks.offsets.push_back(4 * at);
    work.blocks.lengths.push_back(4 * words);
    list.offsets.push_back(static_cast<std::uint32_t>(at));
    list.starts.push_back(list.starts.back() + static_cast<std::uint32_t>(words));
    at += words + 1 + static_cast<std::int64_t>(random() % 4);
  }
  set_indexed_type(work, lengths, displacements, "float");
  work.hand = std::move(list);
  return work;
}

Workload particles(std::int64_t count) {
  Workload work;
  work.family = "struct";
  work.name = "struct {double, 2 int, char}";
  set_type(work, "resized(struct([1, 2, 1], [0, 8, 16], [double, int, char]), 0, 24)");
  work.count = count;
  work.blocks.length = 17;
  for (std::int64_t i = 0; i < count; ++i) work.blocks.offsets.push_back(24 * i);
  work.hand = Records{count, 17, 24};
  return work;
}

}  // namespace gapless::bench
