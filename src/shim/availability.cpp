// The dynamic linker calls these functions when other libraries, and even this one, may not be relocated yet, so
// nothing here may touch another object: system calls are made directly, and the MPI library is found in
// /proc/self/maps and read as the ELF image it is. The compiler options of this file (see CMakeLists.txt) keep
// compilers from adding calls of their own, and a test checks that no undefined symbol is left.
#include "shim/availability.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace {

#if defined(__x86_64__)
long system_call(long number, long a, long b, long c, long d) {
  long result;
  register long r10 asm("r10") = d;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
long system_call(long number, long a, long b, long c, long d) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#endif

// Defined by the linker: this library's ELF header, at its first byte.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));

bool equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

/// What one line of /proc/self/maps says: "start-end rwxp offset device inode path".
struct Mapping {
  std::uintptr_t start, end, offset;
  bool readable;
  bool is_libmpi;  ///< the file's name begins with "libmpi"
};

/// Reads /proc/self/maps a mapping at a time, whatever the length of its lines.
class Maps {
 public:
  Maps()
      : file_(system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC, 0)) {}
  ~Maps() {
    if (file_ >= 0) system_call(SYS_close, file_, 0, 0, 0);
  }
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;

  bool next(Mapping& mapping) {
    char c;
    if (!hexadecimal(mapping.start) || !hexadecimal(mapping.end) || !read(c)) return false;
    mapping.readable = c == 'r';
    skip_field();
    return hexadecimal(mapping.offset) && last_component(mapping.is_libmpi);
  }

 private:
  bool read(char& c) {
    if (at_ == size_) {
      long got = file_ < 0 ? 0 : system_call(SYS_read, file_, reinterpret_cast<long>(buffer_), sizeof(buffer_), 0);
      if (got <= 0) return false;
      size_ = got;
      at_ = 0;
    }
    c = buffer_[at_++];
    return true;
  }

  /// Reads a number and the one character that ends it.
  bool hexadecimal(std::uintptr_t& value) {
    value = 0;
    char c;
    while (read(c)) {
      if (c >= '0' && c <= '9') {
        value = value * 16 + (c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value * 16 + (c - 'a' + 10);
      } else {
        return true;
      }
    }
    return false;
  }

  void skip_field() {
    char c;
    while (read(c) && c != ' ') {
    }
  }

  /// Reads the rest of the line.
  bool last_component(bool& is_libmpi) {
    const char wanted[] = {'l', 'i', 'b', 'm', 'p', 'i'};
    std::size_t same = 0, length = 0;
    char c;
    while (read(c)) {
      if (c == '\n') {
        is_libmpi = same == sizeof(wanted);
        return true;
      }
      if (c == '/') {
        same = length = 0;
      } else {
        if (length == same && same < sizeof(wanted) && c == wanted[same]) ++same;
        ++length;
      }
    }
    return false;
  }

  long file_;
  long at_ = 0, size_ = 0;
  char buffer_[4096];
};

/// The symbols that a mapped ELF object defines.
class Object {
 public:
  /// The object whose first mapping starts at `base`, and where its dynamic section is; null if that is no ELF object.
  static const ElfW(Phdr) * dynamic_segment(std::uintptr_t base) {
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
    if (header->e_ident[EI_MAG0] != ELFMAG0 || header->e_ident[EI_MAG1] != 'E' || header->e_ident[EI_MAG2] != 'L' ||
        header->e_ident[EI_MAG3] != 'F' || header->e_type != ET_DYN) {
      return nullptr;
    }
    const auto* segment = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
    for (int i = 0; i < header->e_phnum; ++i) {
      if (segment[i].p_type == PT_DYNAMIC) return &segment[i];
    }
    return nullptr;
  }

  Object(std::uintptr_t base, const ElfW(Dyn) * dynamic) {
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
      // The dynamic linker may or may not have turned these into addresses yet.
      std::uintptr_t address = dynamic->d_un.d_ptr < base ? base + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr;
      if (dynamic->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
      if (dynamic->d_tag == DT_STRTAB) strings_ = reinterpret_cast<const char*>(address);
      if (dynamic->d_tag == DT_GNU_HASH) gnu_hash_ = reinterpret_cast<const std::uint32_t*>(address);
      if (dynamic->d_tag == DT_HASH) hash_ = reinterpret_cast<const std::uint32_t*>(address);
    }
  }

  bool defines(const char* name) const {
    if (symbols_ == nullptr || strings_ == nullptr) return false;
    if (gnu_hash_ != nullptr) return defined_by_gnu_hash(name);
    for (std::uint32_t i = 1; hash_ != nullptr && i < hash_[1]; ++i) {
      if (is_definition_of(name, symbols_[i])) return true;
    }
    return false;
  }

  const ElfW(Sym) * symbols() const { return symbols_; }

  /// Needs a GNU hash table, which has every defined symbol: its chains end with the last of them.
  std::uint32_t symbol_count() const {
    if (gnu_hash_ == nullptr) return 0;
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < gnu_hash_[0]; ++i) {
      if (gnu_buckets()[i] > last) last = gnu_buckets()[i];
    }
    if (last < gnu_hash_[1]) return 0;
    while ((gnu_chain(last) & 1) == 0) ++last;
    return last + 1;
  }

 private:
  bool is_definition_of(const char* name, const ElfW(Sym) & symbol) const {
    return symbol.st_shndx != SHN_UNDEF && equal(name, strings_ + symbol.st_name);
  }

  const std::uint32_t* gnu_buckets() const {
    const std::uint32_t filter_words = gnu_hash_[2];
    return reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4) + filter_words);
  }

  /// The hash of a symbol, its lowest bit set if the symbol is the last of its bucket.
  std::uint32_t gnu_chain(std::uint32_t symbol) const { return gnu_buckets()[gnu_hash_[0] + symbol - gnu_hash_[1]]; }

  bool defined_by_gnu_hash(const char* name) const {
    const std::uint32_t buckets = gnu_hash_[0], first_symbol = gnu_hash_[1];
    std::uint32_t wanted = 5381;
    for (const char* c = name; *c != '\0'; ++c) wanted = wanted * 33 + static_cast<unsigned char>(*c);
    std::uint32_t i = buckets == 0 ? 0 : gnu_buckets()[wanted % buckets];
    if (i < first_symbol) return false;
    for (;; ++i) {
      const std::uint32_t hash = gnu_chain(i);
      if ((hash | 1) == (wanted | 1) && is_definition_of(name, symbols_[i])) return true;
      if ((hash & 1) != 0) return false;
    }
  }

  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* gnu_hash_ = nullptr;
  const std::uint32_t* hash_ = nullptr;
};

/// Where the MPI library lies. Kept from one question to the next, since a program may ask for hundreds of functions.
struct Found {
  std::uintptr_t base, dynamic;
  ElfW(Off) sections;  ///< where the file's section headers are: another file that is mapped there has another number
} found;

bool is_mapped(std::uintptr_t address) {
  constexpr std::uintptr_t smallest_page = 4096;
  unsigned char resident[1];
  return system_call(SYS_mincore, address & ~(smallest_page - 1), 1, reinterpret_cast<long>(resident), 0) == 0;
}

/// False if the library was unloaded since.
bool is_still_there(const Found& library) {
  return library.base != 0 && is_mapped(library.base) && is_mapped(library.dynamic) &&
         Object::dynamic_segment(library.base) != nullptr &&
         reinterpret_cast<const ElfW(Ehdr)*>(library.base)->e_shoff == library.sections;
}

Object object_at(const Found& library) {
  return Object(library.base, reinterpret_cast<const ElfW(Dyn)*>(library.dynamic));
}

/// The first mapped file libmpi* that is an MPI library, not one of the libraries that come with it.
bool find_library(Found& library) {
  Maps maps;
  Mapping mapping;
  const ElfW(Phdr)* segment = nullptr;
  while (maps.next(mapping)) {
    if (!mapping.is_libmpi || !mapping.readable) continue;
    if (mapping.offset == 0) {
      library.base = mapping.start;
      segment = Object::dynamic_segment(library.base);
    }
    if (segment == nullptr) continue;
    // Only an object mapped by a dynamic linker has its dynamic section where its header says: a file that some tool
    // reads through mmap must not be mistaken for a library.
    library.dynamic = library.base + segment->p_vaddr;
    if (library.dynamic < mapping.start || library.dynamic >= mapping.end) continue;
    if (library.dynamic - mapping.start + mapping.offset != segment->p_offset) continue;
    library.sections = reinterpret_cast<const ElfW(Ehdr)*>(library.base)->e_shoff;
    if (object_at(library).defines("MPI_Get_version")) return true;
  }
  return false;
}

/// Lets [begin, end) be written, or no longer; returns whether the system agreed.
bool protect(std::uintptr_t begin, std::uintptr_t end, int protection) {
  // The size of a page is not known here, and the system refuses addresses that begin no page.
  for (std::uintptr_t page = 4096; page <= 65536; page *= 4) {
    const std::uintptr_t start = begin & ~(page - 1);
    if (system_call(SYS_mprotect, start, end - start, protection, 0) == 0) return true;
  }
  return false;
}

}  // namespace

void* gapless_shim_if_available(const char* name, void* function) {
  if (!is_still_there(found)) {
    Found library = {};
    if (!find_library(library)) return nullptr;
    found = library;
  }
  return object_at(found).defines(name) ? function : nullptr;
}

void* gapless_shim_make_indirect() {
  constexpr std::uintptr_t resolver_after_trampoline = 16;
  const auto base = reinterpret_cast<std::uintptr_t>(__ehdr_start);
  const auto optional_begin = reinterpret_cast<std::uintptr_t>(gapless_shim_optional_begin) - base;
  const auto optional_end = reinterpret_cast<std::uintptr_t>(gapless_shim_optional_end) - base;
  const ElfW(Phdr)* dynamic = Object::dynamic_segment(base);
  const Object ourselves(base, reinterpret_cast<const ElfW(Dyn)*>(base + dynamic->p_vaddr));
  auto* symbols = const_cast<ElfW(Sym)*>(ourselves.symbols());
  const std::uint32_t count = ourselves.symbol_count();
  const auto table_begin = reinterpret_cast<std::uintptr_t>(symbols);
  const auto table_end = reinterpret_cast<std::uintptr_t>(symbols + count);
  if (count == 0 || !protect(table_begin, table_end, PROT_READ | PROT_WRITE)) return symbols;
  for (std::uint32_t i = 0; i < count; ++i) {
    ElfW(Sym)& symbol = symbols[i];
    const bool optional = symbol.st_value >= optional_begin && symbol.st_value < optional_end;
    if (!optional || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    symbol.st_info = ELF64_ST_INFO(ELF64_ST_BIND(symbol.st_info), STT_GNU_IFUNC);
    symbol.st_value += resolver_after_trampoline;
  }
  protect(table_begin, table_end, PROT_READ);
  return symbols;
}
