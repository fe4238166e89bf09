// malloc and its family, defined by the program, which the C library allows: each block gets a header before it and
// guard bytes behind it, and is on the list of live blocks.
#include "sides/heap.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

extern "C" {
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);
}

namespace {

struct alignas(16) Header {
  Header* previous;
  Header* next;
  std::size_t bytes;
  std::size_t offset;  // of the block from the start of what the C library gave
  std::uint64_t mark;
};

constexpr std::uint64_t live_mark = 0x6761706c65737321;
constexpr std::size_t guard_bytes = 64;
constexpr int guard_value = 0xd7;
constexpr std::size_t least_alignment = 16;

constinit Header* first = nullptr;
constinit std::atomic_flag busy = ATOMIC_FLAG_INIT;

class Locked {
 public:
  Locked() {
    while (busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Locked() { busy.clear(std::memory_order_release); }
};

Header* header_of(void* block) { return static_cast<Header*>(block) - 1; }
unsigned char* guard_of(Header* header) { return reinterpret_cast<unsigned char*>(header + 1) + header->bytes; }

void* allocate(std::size_t alignment, std::size_t bytes) {
  if (alignment < least_alignment) alignment = least_alignment;
  const std::size_t offset = (sizeof(Header) + alignment - 1) / alignment * alignment;
  std::size_t total = 0;
  if (__builtin_add_overflow(bytes, offset + guard_bytes, &total)) return nullptr;
  auto* memory = static_cast<char*>(__libc_memalign(alignment, total));
  if (memory == nullptr) return nullptr;
  Header* header = header_of(memory + offset);
  header->bytes = bytes;
  header->offset = offset;
  header->mark = live_mark;
  std::memset(guard_of(header), guard_value, guard_bytes);
  const Locked lock;
  header->previous = nullptr;
  header->next = first;
  if (first != nullptr) first->previous = header;
  first = header;
  return memory + offset;
}

void release(void* block) {
  Header* header = header_of(block);
  // A block whose header is gone is left alone: damaged_block() tells of the one before it.
  if (header->mark != live_mark) return;
  {
    const Locked lock;
    if (header->previous != nullptr) header->previous->next = header->next;
    if (header->next != nullptr) header->next->previous = header->previous;
    if (first == header) first = header->next;
  }
  header->mark = 0;
  __libc_free(static_cast<char*>(block) - header->offset);
}

void* or_errno(void* block) {
  if (block == nullptr) errno = ENOMEM;
  return block;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) { return or_errno(allocate(least_alignment, bytes)); }

void free(void* block) {
  if (block != nullptr) release(block);
}

void* calloc(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  void* block = __builtin_mul_overflow(count, size, &bytes) ? nullptr : allocate(least_alignment, bytes);
  if (block != nullptr) std::memset(block, 0, bytes);
  return or_errno(block);
}

void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  void* larger = malloc(bytes);
  if (larger == nullptr) return nullptr;
  const std::size_t old = header_of(block)->bytes;
  std::memcpy(larger, block, old < bytes ? old : bytes);
  free(block);
  return larger;
}

void* memalign(std::size_t alignment, std::size_t bytes) { return or_errno(allocate(alignment, bytes)); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
void* valloc(std::size_t bytes) { return memalign(4096, bytes); }
void* pvalloc(std::size_t bytes) { return memalign(4096, (bytes + 4095) / 4096 * 4096); }

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  *block = allocate(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}

std::size_t malloc_usable_size(void* block) { return block == nullptr ? 0 : header_of(block)->bytes; }

}  // extern "C"

namespace gapless::test::differential {

std::ptrdiff_t damaged_block() {
  static const auto intact = [] {
    struct Guard {
      unsigned char bytes[guard_bytes];
    } guard;
    std::memset(guard.bytes, guard_value, guard_bytes);
    return guard;
  }();
  const Locked lock;
  for (Header* header = first; header != nullptr; header = header->next) {
    if (header->mark != live_mark) return 0;
    if (std::memcmp(guard_of(header), intact.bytes, guard_bytes) != 0)
      return static_cast<std::ptrdiff_t>(header->bytes);
  }
  return -1;
}

}  // namespace gapless::test::differential
