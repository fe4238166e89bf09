// malloc and its family, defined by the program, which the C library allows: counted, and passed on.
#include "support/allocations.hpp"

#include <atomic>
#include <cerrno>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

constinit std::atomic<std::uint64_t> count{0};

void* counted(void* block) {
  count.fetch_add(1, std::memory_order_relaxed);
  return block;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(std::size_t number, std::size_t size) { return counted(__libc_calloc(number, size)); }
void* realloc(void* block, std::size_t bytes) { return counted(__libc_realloc(block, bytes)); }
void* memalign(std::size_t alignment, std::size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}

}  // extern "C"

namespace gapless::test {

std::uint64_t allocations() { return count.load(std::memory_order_relaxed); }

}  // namespace gapless::test
