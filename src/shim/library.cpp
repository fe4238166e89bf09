// An MPI library is known by defining PMPI_Get_version: every one does since MPI 1.2, tools do not, and gapless never
// exports it, so looking it up cannot lead back here.
#include "shim/library.hpp"

#include <dlfcn.h>

#include <cstring>

// Where the linker has put this library's first byte and the end of its last.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[], _end[];

namespace gapless::shim {

namespace {

constexpr const char* mark_of_a_library = "PMPI_Get_version";

const link_map* ourselves() { return object_of(reinterpret_cast<const void*>(&ourselves)); }

/// The same as object_of(address) == ourselves(), for which the dynamic linker would look through all symbols of the
/// address's object: tens of microseconds for each function of an MPI library.
bool is_ours(const void* address) { return address >= __ehdr_start && address < _end; }

/// A handle on an object that is loaded already; the main program's has an empty name.
void* handle_of(const link_map* object) {
  return dlopen(object->l_name[0] == '\0' ? nullptr : object->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

/// The MPI library that a look-up through `handle` comes to; null if it comes to none.
const link_map* library_seen_through(void* handle) {
  const void* mark = dlsym(handle, mark_of_a_library);
  return mark == nullptr ? nullptr : object_of(mark);
}

/// The MPI library that code in `object` sees; null if it sees none.
const link_map* library_seen_by(const link_map* object) {
  void* handle = handle_of(object);
  if (handle == nullptr) return nullptr;
  const link_map* library = library_seen_through(handle);
  dlclose(handle);
  return library;
}

const link_map* library_seen_globally() {
  const link_map* library = library_seen_through(RTLD_NEXT);
  return library != nullptr ? library : library_seen_through(RTLD_DEFAULT);
}

/// Needed when an MPI library was loaded with RTLD_LOCAL and the call came through code that does not depend on it.
const link_map* library_anywhere() {
  const link_map* object = ourselves();
  while (object->l_prev != nullptr) object = object->l_prev;
  for (; object != nullptr; object = object->l_next) {
    if (const link_map* library = library_seen_by(object)) return library;
  }
  return nullptr;
}

/// MPICH 5 has MPI_Abi_get_version in both of its libraries and answers -1 in the one that has its own ABI.
Abi abi_of(void* handle) {
  if (void* symbol = dlsym(handle, "MPI_Abi_get_version")) {
    int major = -1, minor = -1;
    auto get_version = reinterpret_cast<int (*)(int*, int*)>(symbol);
    if (get_version(&major, &minor) == 0 && major >= 1) return Abi::standard;
  }
  return dlsym(handle, "ompi_mpi_comm_self") != nullptr ? Abi::openmpi : Abi::mpich;
}

}  // namespace

const char* name_of(Abi abi) {
  switch (abi) {
    case Abi::standard:
      return "abi";
    case Abi::openmpi:
      return "openmpi";
    case Abi::mpich:
      break;
  }
  return "mpich";
}

const link_map* object_of(const void* address) {
  Dl_info info;
  void* object = nullptr;
  return dladdr1(address, &info, &object, RTLD_DL_LINKMAP) != 0 ? static_cast<const link_map*>(object) : nullptr;
}

Library Library::find(const void* caller) {
  Library library;
  if (const link_map* object = object_of(caller)) library.object = library_seen_by(object);
  if (library.object == nullptr) library.object = library_seen_globally();
  if (library.object == nullptr) library.object = library_anywhere();
  if (library.object == nullptr) return library;
  library.handle = handle_of(library.object);  // kept: the slots will point into the library
  library.abi = abi_of(library.handle);
  return library;
}

void* Library::symbol(const char* name) const {
  if (abi == Abi::openmpi && std::strncmp(name, "ompi_", 5) == 0) {
    if (void* in_use = dlsym(RTLD_DEFAULT, name)) return in_use;
  }
  void* found = dlsym(handle, name);
  return is_ours(found) ? nullptr : found;
}

void* without_library(const char* name, const void* caller) {
  void* found = nullptr;
  if (const link_map* object = object_of(caller)) {
    if (void* handle = handle_of(object)) {
      found = dlsym(handle, name);
      dlclose(handle);
    }
  }
  if (found == nullptr || is_ours(found)) found = dlsym(RTLD_NEXT, name);
  return is_ours(found) ? nullptr : found;
}

void* tool_behind_us(const char* name, const Library& library) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr || is_ours(found)) return nullptr;
  if (library.handle != nullptr && found == dlsym(library.handle, name)) return nullptr;
  const link_map* object = object_of(found);
  if (object == nullptr) return nullptr;
  void* handle = handle_of(object);
  if (handle == nullptr) return nullptr;
  // A tool that depends on the MPI library sees the library; the library sees itself.
  const bool is_library = library_seen_through(handle) == object;
  // Another copy of gapless is none either: the two would share out one request's calls between them.
  const void* shim = dlsym(handle, "gapless_shim_report");
  const bool is_copy = shim != nullptr && object_of(shim) == object;
  dlclose(handle);
  return is_library || is_copy ? nullptr : found;
}

}  // namespace gapless::shim
