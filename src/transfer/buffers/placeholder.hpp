// Memory in the place of a buffer that could not be packed, of a collective call. The other processes of the call wait
// for this one, so it takes part all the same: with zeros to send and room to receive into, in which nothing but what
// is written takes up memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gapless::transfer {

class Placeholder {
 public:
  Placeholder() noexcept = default;
  ~Placeholder() { release(); }
  Placeholder(const Placeholder&) = delete;
  Placeholder& operator=(const Placeholder&) = delete;

  /// Reserves as many addresses as there are from `begin` to `end`, of the same alignment. Null if the system has none
  /// left. Precondition: nothing is reserved.
  std::byte* reserve(std::intptr_t begin, std::intptr_t end) noexcept;
  /// Gives them back, if there are any.
  void release() noexcept;

 private:
  void* mapping_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gapless::transfer
