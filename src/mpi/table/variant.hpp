// What the shim and a variant say to each other. No mpi.h here: the shim serves every ABI.
#pragma once

#include <cstddef>

extern "C" {

/// Finds a symbol of the program's own MPI library (never of gapless); null if the library lacks it.
typedef void* (*gapless_find_symbol)(const char* name, void* context);

/// One function that a variant serves: its name without prefix ("Send" for MPI_Send and PMPI_Send) and where calls go.
struct gapless_variant_entry {
  const char* name;
  void* implementation;
};

/// Exported by every variant as `gapless_variant_open`. Fills the variant's table of native functions, and returns the
/// functions that the variant serves, `*count` of them, valid until the process ends; null if the library lacks what is
/// needed, with one sentence in *why. Called once, under the shim's lock.
typedef const gapless_variant_entry* (*gapless_variant_open_function)(gapless_find_symbol find, void* context,
                                                                      std::size_t* count, const char** why);

/// Given by the shim: sends calls of these functions there from now on. What is not among them stays where it leads.
typedef void (*gapless_redirect)(const gapless_variant_entry* entries, std::size_t count);

/// Exported by a variant that has additions, as `gapless_additions_open`; called once, after gapless_variant_open and
/// under the same lock. Returns `*count` additions of additions.def by their names without prefix, valid until the
/// process ends; `redirect` may be called at any time.
typedef const gapless_variant_entry* (*gapless_additions_open_function)(gapless_redirect redirect, std::size_t* count);
}
