// Memory in the place of a buffer of a collective call that could not be packed. The other processes of the call wait
// for this one, so this process takes part all the same, with zeros to send and room to receive into. Written pages
// alone take up memory.
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

  /// Reserves as many addresses as from `begin` to `end`, with the same alignment. Null if the system has none left.
  /// Precondition: nothing is reserved.
  std::byte* reserve(std::intptr_t begin, std::intptr_t end) noexcept;
  /// Gives the reserved addresses back, if there are any.
  void release() noexcept;

 private:
  void* mapping_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gapless::transfer
