#include "support/environment.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace gapless::test {
namespace {

/// The MPI library among the loaded objects, by its file name: a lookup by symbol would meet gapless first.
void* open_mpi_library() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const char* slash = std::strrchr(info->dlpi_name, '/');
        const char* file = slash ? slash + 1 : info->dlpi_name;
        for (const char* prefix : {"libmpi.so", "libmpi_abi.so", "libmpich.so"})
          if (std::strncmp(file, prefix, std::strlen(prefix)) == 0)
            *static_cast<std::string*>(result) = info->dlpi_name;
        return 0;
      },
      &path);
  return dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

bool expect_gapless() {
  const char* text = std::getenv("GAPLESS_TEST_EXPECT");
  return text && std::strcmp(text, "1") == 0;
}

bool under_gapless() {
  auto* report = reinterpret_cast<std::size_t (*)(char*, std::size_t)>(dlsym(RTLD_DEFAULT, "gapless_shim_report"));
  if (!report) return false;
  char text[4096] = "";
  report(text, sizeof text);
  return std::strstr(text, "state=active") != nullptr;
}

void* native_function(const char* name) {
  static void* library = open_mpi_library();
  void* function = library ? dlsym(library, name) : nullptr;
  if (!function) {
    std::fprintf(stderr, "The loaded MPI library has no %s\n", name);
    std::abort();
  }
  return function;
}

}  // namespace gapless::test
