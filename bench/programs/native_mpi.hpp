// The MPI library's own functions in a process where gapless may stand before them: both ways can be timed side by
// side.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <cstring>

namespace gapless::bench {

/// The library's own PMPI_<name>: looked up in the object that is the MPI library, never in the global scope.
inline void* native_symbol(const char* name) {
  static void* library = [] {
    void* found = nullptr;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* result) {
          const char* base = std::strrchr(object->dlpi_name, '/');
          if (base == nullptr || std::strncmp(base, "/libmpi", 7) != 0) return 0;
          *static_cast<void**>(result) = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
          return 1;
        },
        &found);
    return found;
  }();
  return dlsym(library, name);
}

#define GAPLESS_BENCH_NATIVE(name) reinterpret_cast<decltype(&MPI_##name)>(gapless::bench::native_symbol("PMPI_" #name))

inline bool is_interposed() { return reinterpret_cast<void*>(&MPI_Send) != native_symbol("MPI_Send"); }

}  // namespace gapless::bench
