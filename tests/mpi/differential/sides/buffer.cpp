#include "sides/buffer.hpp"

#include <algorithm>
#include <cstring>

namespace gapless::test::differential {
namespace {

// How many bytes of each `unit` bytes of an element carry its value: a long double of x86-64 has ten of sixteen, and
// the rest may arrive or not.
struct Padding {
  std::size_t unit;
  std::size_t used;
};

Padding padding_of(const Element& element) {
#if defined(__x86_64__)
  if (element.basic == MPI_LONG_DOUBLE || element.basic == MPI_C_LONG_DOUBLE_COMPLEX) return {16, 10};
#endif
  return {element.size, element.size};
}

void fill(std::span<std::byte> memory, std::uint64_t key) {
  std::uint64_t state = key | 1;
  for (std::size_t at = 0; at < memory.size(); at += sizeof state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(memory.data() + at, &state, std::min(sizeof state, memory.size() - at));
  }
}

}  // namespace

Side::Side(Type of, int repetitions) : type(std::move(of)), count(repetitions) {
  const TypeMap& map = type.map();
  elements.reserve(map.elements.size() * static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k) {
    for (const Element& element : map.elements) {
      elements.push_back({element.displacement + k * map.extent, element.size, element.basic});
      bytes += element.size;
    }
  }
}

std::string Side::text() const {
  return std::to_string(count) + " * " + type.text() + " = " + std::to_string(bytes) + " B";
}

bool overlaps(const Side& side) {
  std::vector<std::pair<MPI_Aint, MPI_Aint>> ranges;
  for (const Element& element : side.elements)
    ranges.emplace_back(element.displacement, element.displacement + static_cast<MPI_Aint>(element.size));
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t k = 1; k < ranges.size(); ++k)
    if (ranges[k].first < ranges[k - 1].second) return true;
  return false;
}

Buffer::Buffer(const Side& side, std::uint64_t key, std::size_t room) : side_(&side) {
  MPI_Aint low = 0;
  MPI_Aint high = 0;
  for (const Element& element : side.elements) {
    low = std::min(low, element.displacement);
    high = std::max(high, element.displacement + static_cast<MPI_Aint>(element.size));
  }
  memory_.resize(static_cast<std::size_t>(high - low) + 2 * room);
  base_ = static_cast<std::size_t>(-low) + room;
  fill(memory_, key);
  before_ = memory_;
}

void Stream::append(const Stream& other) {
  bytes.insert(bytes.end(), other.bytes.begin(), other.bytes.end());
  is_padding.insert(is_padding.end(), other.is_padding.begin(), other.is_padding.end());
}

Stream Stream::part(std::size_t first, std::size_t length) const {
  const auto at = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(first + length);
  return {{bytes.begin() + at, bytes.begin() + end}, {is_padding.begin() + at, is_padding.begin() + end}};
}

Stream Buffer::stream() const {
  Stream stream{std::vector<std::byte>(side_->bytes), std::vector<bool>(side_->bytes)};
  std::size_t at = 0;
  for (const Element& element : side_->elements) {
    std::memcpy(&stream.bytes[at], &before_[base_ + static_cast<std::size_t>(element.displacement)], element.size);
    const auto [unit, used] = padding_of(element);
    for (std::size_t k = 0; used < unit && k < element.size; ++k) stream.is_padding[at + k] = k % unit >= used;
    at += element.size;
  }
  return stream;
}

Difference Buffer::compare(const Stream& stream) const {
  std::vector<std::byte> wanted = before_;
  std::size_t at = 0;
  for (const Element& element : side_->elements) {
    if (at >= stream.bytes.size()) break;
    const std::size_t bytes = std::min(element.size, stream.bytes.size() - at);
    const std::size_t place = base_ + static_cast<std::size_t>(element.displacement);
    std::memcpy(&wanted[place], &stream.bytes[at], bytes);
    const auto [unit, used] = padding_of(element);
    for (std::size_t k = 0; k < bytes; ++k)
      if (stream.is_padding[at + k] || k % unit >= used) wanted[place + k] = memory_[place + k];
    at += bytes;
  }
  Difference difference;
  if (wanted == memory_) return difference;
  // Something differs: what of it does the side name?
  at = 0;
  for (const Element& element : side_->elements) {
    const std::size_t place = base_ + static_cast<std::size_t>(element.displacement);
    for (std::size_t k = 0; k < element.size; ++k, ++at) {
      if (wanted[place + k] == memory_[place + k]) continue;
      if (difference.inside++ == 0) difference.first = static_cast<std::ptrdiff_t>(at);
      wanted[place + k] = memory_[place + k];
    }
  }
  for (std::size_t k = 0; k < memory_.size(); ++k) {
    if (wanted[k] == memory_[k]) continue;
    if (difference.outside++ == 0)
      difference.first_out = static_cast<std::ptrdiff_t>(k) - static_cast<std::ptrdiff_t>(base_);
  }
  return difference;
}

std::uint64_t Buffer::digest(const Stream& stream) const {
  std::vector<std::byte> memory = memory_;
  std::size_t at = 0;
  for (const Element& element : side_->elements) {
    const std::size_t place = base_ + static_cast<std::size_t>(element.displacement);
    const auto [unit, used] = padding_of(element);
    const std::size_t end = stream.bytes.size();
    const bool is_cut = at < end && end < at + element.size;
    for (std::size_t k = 0; k < element.size; ++k, ++at)
      if (is_cut || k % unit >= used || (at < end && stream.is_padding[at])) memory[place + k] = {};
  }
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const std::byte byte : memory) digest = (digest ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return digest;
}

}  // namespace gapless::test::differential
