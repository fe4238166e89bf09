// Reads the library's relocations as the System V ABI and its processor supplements lay them down: each names a symbol
// and the place its address goes to.
#include "device/imports.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace gapless::device {
namespace {

#if defined(__x86_64__)
constexpr bool holds_an_address(std::uint32_t type) noexcept {
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
}
#elif defined(__aarch64__)
constexpr bool holds_an_address(std::uint32_t type) noexcept {
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
}
#else
constexpr bool holds_an_address(std::uint32_t) noexcept { return false; }
#endif

/// What of a library's dynamic section says which symbols go where.
struct DynamicSection {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> for_calls, for_data;

  explicit DynamicSection(const link_map& library) noexcept {
    const ElfW(Rela)* calls = nullptr;
    const ElfW(Rela)* data = nullptr;
    std::size_t bytes_for_calls = 0, bytes_for_data = 0;
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
      // C libraries differ in whether they turn these into addresses.
      const std::uintptr_t value = entry->d_un.d_ptr;
      const std::uintptr_t address = value < library.l_addr ? library.l_addr + value : value;
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_JMPREL) calls = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_RELA) data = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_PLTRELSZ) bytes_for_calls = value;
      if (entry->d_tag == DT_RELASZ) bytes_for_data = value;
    }
    if (symbols == nullptr || names == nullptr) return;
    if (calls != nullptr) for_calls = {calls, bytes_for_calls / sizeof *calls};
    if (data != nullptr) for_data = {data, bytes_for_data / sizeof *data};
  }

  const char* name_of(const ElfW(Rela) & relocation) const noexcept {
    return names + symbols[ELF64_R_SYM(relocation.r_info)].st_name;
  }
};

/// Finds places; writes nothing.
class Search {
 public:
  Search(const link_map& library, std::span<const Redirection> redirections, std::span<RedirectedImport> found) noexcept
      : library_(library), redirections_(redirections), found_(found) {
    const DynamicSection dynamic(library);
    for (const auto& relocation : dynamic.for_calls) consider(dynamic, relocation);
    for (const auto& relocation : dynamic.for_data) consider(dynamic, relocation);
  }

  /// More than there is room for, where there are.
  std::size_t count() const noexcept { return count_; }

 private:
  void consider(const DynamicSection& dynamic, const ElfW(Rela) & relocation) noexcept {
    if (!holds_an_address(ELF64_R_TYPE(relocation.r_info))) return;
    const char* name = dynamic.name_of(relocation);
    for (const Redirection& redirection : redirections_) {
      if (std::strcmp(name, redirection.function) != 0) continue;
      if (count_ < found_.size()) {
        auto* place = reinterpret_cast<std::atomic<void*>*>(library_.l_addr + relocation.r_offset);
        found_[count_] = {place, redirection.replacement};
      }
      ++count_;
    }
  }

  const link_map& library_;
  std::span<const Redirection> redirections_;
  std::span<RedirectedImport> found_;
  std::size_t count_ = 0;
};

/// The addresses that the dynamic linker made read-only when it had written them (PT_GNU_RELRO).
struct ReadOnlyAfterRelocation {
  std::uintptr_t begin = 0, end = 0;

  explicit ReadOnlyAfterRelocation(const link_map& library) noexcept {
    begin = library.l_addr;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
          auto& range = *static_cast<ReadOnlyAfterRelocation*>(result);
          if (info->dlpi_addr != range.begin) return 0;
          range.begin = 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& header = info->dlpi_phdr[i];
            if (header.p_type != PT_GNU_RELRO) continue;
            range.begin = static_cast<std::uintptr_t>(info->dlpi_addr + header.p_vaddr);
            range.end = range.begin + header.p_memsz;
          }
          return 1;
        },
        this);
  }

  bool contains(const void* place) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    return address >= begin && address < end;
  }
};

bool protect_page_of(void* place, int protection) noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(place) & ~(page - 1);
  return mprotect(reinterpret_cast<void*>(start), page, protection) == 0;
}

}  // namespace

std::size_t redirect_imports(const link_map& library, std::span<const Redirection> redirections,
                             std::span<RedirectedImport> redirected) noexcept {
  const std::size_t count = Search(library, redirections, redirected).count();
  if (count > redirected.size()) return 0;
  const ReadOnlyAfterRelocation read_only(library);
  for (const RedirectedImport& import : redirected.first(count)) {
    if (read_only.contains(import.place) && !protect_page_of(import.place, PROT_READ | PROT_WRITE)) return 0;
  }
  for (const RedirectedImport& import : redirected.first(count)) {
    import.place->store(import.replacement, std::memory_order_release);
  }
  for (const RedirectedImport& import : redirected.first(count)) {
    if (read_only.contains(import.place)) protect_page_of(import.place, PROT_READ);
  }
  return count;
}

}  // namespace gapless::device
