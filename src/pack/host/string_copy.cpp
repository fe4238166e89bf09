#include "pack/host/string_copy.hpp"

#include <cstring>

#ifdef __x86_64__
#include <cpuid.h>
#include <emmintrin.h>
#endif

namespace gapless::pack::host {

#ifdef __x86_64__

bool has_string_copy() noexcept {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned enhanced_string_instructions = 1U << 9;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & enhanced_string_instructions) != 0;
  }();
  return has;
}

void string_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void ordinary_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::size_t done = 0;
  // The compiler knows a loop over plain words for a call of memcpy, which may use the string instruction.
  for (; bytes - done >= sizeof(__m128i); done += sizeof(__m128i))
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + done),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done)));
  std::memcpy(to + done, from + done, bytes - done);
}

#else

bool has_string_copy() noexcept { return false; }
void string_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }
void ordinary_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }

#endif

}  // namespace gapless::pack::host
