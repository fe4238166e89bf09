// The program's own MPI library: which of the objects in this process it is, and which ABI it speaks.
#pragma once

#include <link.h>

namespace gapless::shim {

enum class Abi { mpich, openmpi, standard };

/// The name of the variant that serves an ABI.
const char* name_of(Abi abi);

/// The object that holds an address, by where it is mapped; null if there is none.
const link_map* object_of(const void* address);

struct Library {
  void* handle = nullptr;            ///< for dlsym: the library, then what it depends on, never gapless
  const link_map* object = nullptr;  ///< null if none was found
  Abi abi = Abi::mpich;

  /// The library that a call from `caller` would have reached without gapless.
  static Library find(const void* caller);

  /// A symbol of the library; null if it has none of that name. Open MPI's data is looked for where an executable's
  /// copy of it would be found first, since that copy is the one in use.
  void* symbol(const char* name) const;
};

/// Where a call of `name` from `caller` would have gone without gapless, in a process without an MPI library: programs
/// bring a few MPI functions of their own, to run without one. Null if nobody has the function.
void* without_library(const char* name, const void* caller);

/// What stands behind gapless in the search order as `name` and is no MPI library: a tool's wrapper that was preloaded
/// after gapless; null if there is none. `library` is the program's.
void* tool_behind_us(const char* name, const Library& library);

}  // namespace gapless::shim
