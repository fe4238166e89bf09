#include "transfer/buffers/placeholder.hpp"

#include <sys/mman.h>

namespace gapless::transfer {

void Placeholder::release() noexcept {
  if (mapping_ != nullptr) munmap(mapping_, bytes_);
  mapping_ = nullptr;
}

std::byte* Placeholder::reserve(std::intptr_t begin, std::intptr_t end) noexcept {
  constexpr std::intptr_t page = 4096;
  const std::intptr_t in_page = begin & (page - 1);
  std::intptr_t span = 0;
  if (__builtin_sub_overflow(end, begin - in_page, &span) || span <= 0) return nullptr;
  bytes_ = static_cast<std::size_t>(span);
  void* const mapped =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  mapping_ = mapped;
  return static_cast<std::byte*>(mapped) + in_page;
}

}  // namespace gapless::transfer
