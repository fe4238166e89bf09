#include "device/host_memory.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstdint>
#include <cstdio>

namespace gapless::device {
namespace {

struct Interval {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool contains(std::uintptr_t address) const noexcept { return address - begin < end - begin; }
};

/// The writable segments of the program itself: the first object the dynamic linker lists.
Interval program_data() noexcept {
  Interval data;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        auto& range = *static_cast<Interval*>(result);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
          const auto begin = static_cast<std::uintptr_t>(info->dlpi_addr + header.p_vaddr);
          range = {begin, begin + header.p_memsz};
        }
        return 1;
      },
      &data);
  return data;
}

/// Where the kernel put the start of the heap (field 47 of /proc/self/stat); all ones where it does not say.
std::uintptr_t heap_begin() noexcept {
  std::uintptr_t begin = UINTPTR_MAX;
  if (std::FILE* stat = std::fopen("/proc/self/stat", "re")) {
    char line[2048];
    const std::size_t length = std::fread(line, 1, sizeof line - 1, stat);
    std::fclose(stat);
    line[length] = '\0';
    // The second field, the program's name in parentheses, may itself hold spaces and parentheses.
    const char* field = line + length;
    while (field > line && *field != ')') --field;
    int number = 2;
    for (; *field != '\0' && number < 47; ++field) number += *field == ' ';
    unsigned long value = 0;
    if (number == 47 && std::sscanf(field, "%lu", &value) == 1 && value != 0) begin = value;
  }
  return begin;
}

constexpr Interval known_to_be_nothing{1, 1};

/// Kept out of the way of the threads that have asked before.
[[gnu::noinline, gnu::cold]] Interval stack_of_this_thread() noexcept {
  Interval stack = known_to_be_nothing;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return stack;
  void* lowest = nullptr;
  std::size_t size = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
    stack = {reinterpret_cast<std::uintptr_t>(lowest), reinterpret_cast<std::uintptr_t>(lowest) + size};
  }
  pthread_attr_destroy(&attributes);
  return stack;
}

constinit Interval program;
constinit std::uintptr_t heap = UINTPTR_MAX;

// The C library's own record of the break. Not sbrk(0): communication libraries (UCX) replace that function by one that
// makes a system call each time. Null where the C library has no such record: then nothing is surely heap.
constinit const std::uintptr_t* heap_end = nullptr;

// Few bytes in the static block of thread-local storage: found by one addition where a call would double the cost. Ends
// at 0 until it is known.
__attribute__((tls_model("initial-exec"))) constinit thread_local Interval stack_of_thread;

}  // namespace

void learn_host_memory() noexcept {
  program = program_data();
  heap = heap_begin();
  heap_end = static_cast<const std::uintptr_t*>(dlsym(RTLD_DEFAULT, "__curbrk"));
}

bool is_surely_host(const void* pointer) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (program.contains(address)) return true;
  if (heap_end != nullptr && address >= heap && address < *heap_end) return true;
  // Only what lies between this frame and the stack's top is known to be stack. A thread that runs on a stack of the
  // program's own making (coroutines, user-level threads) has a frame outside the thread's stack, and gets no answer.
  Interval& stack = stack_of_thread;
  if (stack.end == 0) [[unlikely]]
    stack = stack_of_this_thread();
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return stack.contains(frame) && address >= frame && address < stack.end;
}

}  // namespace gapless::device
