// The dynamic linker may ask for an indirect function's address before libgapless is relocated (a library linked with
// -z now that refers to one), so nothing here may touch another object: system calls are made directly, and the MPI
// library is found in /proc/self/maps and read as the ELF image it is. The compiler options of this file (see
// CMakeLists.txt) keep compilers from adding calls of their own, and a test checks that no undefined symbol is left.
#include "shim/availability.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
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

 private:
  bool is_definition_of(const char* name, const ElfW(Sym) & symbol) const {
    return symbol.st_shndx != SHN_UNDEF && equal(name, strings_ + symbol.st_name);
  }

  bool defined_by_gnu_hash(const char* name) const {
    const std::uint32_t buckets = gnu_hash_[0], first_symbol = gnu_hash_[1], filter_words = gnu_hash_[2];
    const std::uint32_t* bucket =
        reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4) + filter_words);
    const std::uint32_t* chain = bucket + buckets;
    std::uint32_t wanted = 5381;
    for (const char* c = name; *c != '\0'; ++c) wanted = wanted * 33 + static_cast<unsigned char>(*c);
    std::uint32_t i = buckets == 0 ? 0 : bucket[wanted % buckets];
    if (i < first_symbol) return false;
    for (;; ++i) {
      const std::uint32_t hash = chain[i - first_symbol];
      if ((hash | 1) == (wanted | 1) && is_definition_of(name, symbols_[i])) return true;
      if ((hash & 1) != 0) return false;
    }
  }

  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* gnu_hash_ = nullptr;
  const std::uint32_t* hash_ = nullptr;
};

/// Where an MPI library was found. Kept from question to question, since a program may ask for hundreds of functions.
struct Found {
  std::uintptr_t base, dynamic;
  ElfW(Off) sections;  ///< differs between files, so tells whether another one has come to lie there
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

}  // namespace

void* gapless_shim_if_available(const char* name, void* function) {
  if (!is_still_there(found)) {
    Found library = {};
    if (!find_library(library)) return nullptr;
    found = library;
  }
  return object_at(found).defines(name) ? function : nullptr;
}
