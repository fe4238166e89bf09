#include "device/host_memory.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdio>

#include "base/own_stack.hpp"

namespace gapless::device {
namespace {

using gapless::internal::Interval;

/// The last writable segment of the program itself, which is the first object that the dynamic linker lists. Linkers
/// make one.
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

constinit Interval program;
constinit std::uintptr_t heap = UINTPTR_MAX;

// The C library's own record of the break. Not sbrk(0): communication libraries (UCX) replace that function by one that
// makes a system call each time. Null where the C library has no such record: then nothing is surely heap.
constinit const std::uintptr_t* heap_end = nullptr;

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
  return is_on_own_stack(pointer, __builtin_frame_address(0));
}

}  // namespace gapless::device
