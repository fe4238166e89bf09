// malloc and its family, defined by the program, which the C library allows: counted, and passed on. Not under the
// thread sanitizer, which has a heap of its own: there nothing is counted or refused.
#include "support/allocations.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

constinit std::atomic<std::uint64_t> count{0};
constexpr std::size_t no_size = static_cast<std::size_t>(-1);
constinit std::atomic<std::size_t> refused_from{no_size};
constinit thread_local bool refuses_next = false;
constexpr unsigned no_number = static_cast<unsigned>(-1);
constinit thread_local unsigned news_until_refused = no_number;
constinit thread_local bool refuses_all_news = false, has_refused_new = false;

[[maybe_unused]] bool is_refused() { return std::exchange(refuses_next, false); }

/// Is this code of the simulated GPU, in whose place would be a driver?
bool is_simulated(const void* code) {
  Dl_info where;
  return dladdr(code, &where) != 0 && std::strstr(where.dli_fname, "simulated") != nullptr;
}

/// Is this request by `new` to be refused?
[[maybe_unused]] bool is_new_refused(const void* caller) {
  if (news_until_refused == no_number || (has_refused_new && !refuses_all_news) || is_simulated(caller)) return false;
  if (news_until_refused == 0) return has_refused_new = true;
  --news_until_refused;
  return false;
}

[[maybe_unused]] void* counted(void* block) {
  count.fetch_add(1, std::memory_order_relaxed);
  return block;
}

}  // namespace

#if !defined(__SANITIZE_THREAD__)
extern "C" {

void* malloc(std::size_t bytes) { return is_refused() ? nullptr : counted(__libc_malloc(bytes)); }
void* calloc(std::size_t number, std::size_t size) {
  return is_refused() ? nullptr : counted(__libc_calloc(number, size));
}
void* realloc(void* block, std::size_t bytes) { return counted(__libc_realloc(block, bytes)); }
void* memalign(std::size_t alignment, std::size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  const bool refused = is_refused() || bytes >= refused_from.load(std::memory_order_relaxed);
  return refused ? nullptr : memalign(alignment, bytes);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}

}  // extern "C"

// libstdc++'s others end in these. Each is freed as malloc's memory.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return is_new_refused(__builtin_return_address(0)) ? nullptr : malloc(bytes);
}
void* operator new(std::size_t bytes) {
  void* const block = is_new_refused(__builtin_return_address(0)) ? nullptr : malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
#endif

namespace gapless::test {

NoAlignedMemory::NoAlignedMemory(std::size_t from_bytes) { refused_from = from_bytes; }
NoAlignedMemory::~NoAlignedMemory() { refused_from = no_size; }

void refuse_next_allocation() { refuses_next = true; }

NoNew::NoNew(unsigned after, Refused refused) {
  refuses_all_news = refused == Refused::all;
  has_refused_new = false;
  news_until_refused = after;
}
NoNew::~NoNew() { news_until_refused = no_number; }
bool NoNew::is_refused() { return has_refused_new; }

std::uint64_t allocations() { return count.load(std::memory_order_relaxed); }

}  // namespace gapless::test
