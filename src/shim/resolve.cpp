// The first MPI call of a process comes here: finds the program's MPI library, loads the variant for its ABI, and fills
// every slot, once. Whatever fails on the way, calls go straight to the library instead: a program must run with
// gapless whenever it runs without.
#include <dlfcn.h>
#include <pthread.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi/table/variant.hpp"
#include "shim/library.hpp"
#include "shim/shim.hpp"

namespace gapless::shim {

namespace {

#define GAPLESS_NAME_intercepted(name) "PMPI_" #name,
#define GAPLESS_NAME_guarded(name) "PMPI_" #name,
#define GAPLESS_NAME_waiting(name) "PMPI_" #name,
#define GAPLESS_NAME_endpoints(name) "PMPI_" #name,
#define GAPLESS_NAME_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_NAME_##mark(name)
#define GAPLESS_EXTENSION(name, ...) "PMPIX_" #name,
#define GAPLESS_ADDITION(name) "PMPIX_" #name,
#define GAPLESS_FORTRAN_ADDITION(name) "pmpix_" #name,
/// The exported functions in the order of the slots. MPI_X is PMPI_X without its first letter, and MPIX_X PMPIX_X.
constexpr const char* pmpi_names[] = {
#include "mpi/table/functions.def"
// In the order of the slots.
#include "mpi/table/extensions.def"
// Ours come last.
#include "mpi/table/additions.def"
};
constexpr int function_count = sizeof(pmpi_names) / sizeof(pmpi_names[0]);

#define GAPLESS_ADDITION(name) +1
#define GAPLESS_FORTRAN_ADDITION(name) +1
constexpr int addition_count = 0
#include "mpi/table/additions.def"
    ;
bool is_addition(int function) { return function >= function_count - addition_count; }

const char* mpi_name(int function) { return pmpi_names[function] + 1; }
const char* bare_name(int function) { return std::strchr(pmpi_names[function], '_') + 1; }

struct State {
  enum { unresolved, resolving, resolved } progress = unresolved;
  Library library;
  const link_map* variant = nullptr;  ///< null unless active
  const gapless_variant_entry* additions = nullptr;
  std::size_t addition_count = 0;
  bool redirected = false;  ///< endpoints were made
  char why[512] = "no MPI function has been called";
} state;

pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

struct Lock {
  Lock() { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

bool environment_is(const char* name, const char* value) {
  const char* set = std::getenv(name);
  return set != nullptr && std::strcmp(set, value) == 0;
}

void note(const char* reason, const char* detail) {
  std::snprintf(state.why, sizeof(state.why), "%s%s%s", reason, detail[0] == '\0' ? "" : ": ", detail);
}

/// Stands in for a function that the program calls and no library in the process has. The value is
/// MPI_ERR_UNSUPPORTED_OPERATION of the ABI.
int unsupported() {
  const Abi abi = state.library.abi;
  return abi == Abi::mpich ? 44 : abi == Abi::openmpi ? 52 : 55;
}

/// Stands in for a function of gapless/endpoints.h where gapless is off or is built without endpoints. No library has a
/// text that fits the error, so one line says why.
int unsupported_addition() {
  static bool is_said = false;
  if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED)) {
    std::fprintf(
        stderr, "gapless: a function of gapless/endpoints.h was called and does nothing: gapless is %s%s\n",
        state.variant != nullptr ? "built without endpoints" : "off: ", state.variant != nullptr ? "" : state.why);
  }
  return unsupported();
}

void* native(const char* name) {
  void* function = state.library.handle == nullptr ? nullptr : state.library.symbol(name);
  return function != nullptr ? function : reinterpret_cast<void*>(&unsupported);
}

void* find_for_variant(const char* name, void* library) { return static_cast<const Library*>(library)->symbol(name); }

void redirect(const gapless_variant_entry* entries, std::size_t count);

/// The functions that the variant adds to MPI.
const gapless_variant_entry* open_additions(void* variant, std::size_t* count) {
  *count = 0;
  void* open = dlsym(variant, "gapless_additions_open");
  return open == nullptr ? nullptr : reinterpret_cast<gapless_additions_open_function>(open)(&redirect, count);
}

/// Where this library was when it was loaded, even if its path was relative: the dynamic linker knows. ("$ORIGIN" would
/// be another's folder where a tool or sanitizer has a dlopen of its own.)
void find_own_folder(char* folder) {
  if (const link_map* self = object_of(&state)) dlinfo(const_cast<link_map*>(self), RTLD_DI_ORIGIN, folder);
}

/// The variant's functions; null, with the reason noted, if it cannot be used.
const gapless_variant_entry* open_variant(std::size_t* count) {
  char file[PATH_MAX + 32] = "";
  find_own_folder(file);
  const std::size_t length = std::strlen(file);
  std::snprintf(file + length, sizeof(file) - length, "/libgapless-%s.so", name_of(state.library.abi));
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    note("cannot load the variant from beside libgapless.so", dlerror());
    return nullptr;
  }
  void* open = dlsym(handle, "gapless_variant_open");
  if (open == nullptr) {
    note("the variant has no entry point", dlerror());
    return nullptr;
  }
  const char* why = "it does not say why";
  const gapless_variant_entry* entries =
      reinterpret_cast<gapless_variant_open_function>(open)(&find_for_variant, &state.library, count, &why);
  if (entries == nullptr) {
    note("the variant cannot serve this MPI library", why);
    return nullptr;
  }
  state.variant = object_of(open);
  state.additions = open_additions(handle, &state.addition_count);
  return entries;
}

void* implementation(const gapless_variant_entry* entries, std::size_t count, const char* name) {
  if (entries == nullptr) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strcmp(entries[i].name, name) == 0) return entries[i].implementation;
  }
  return nullptr;
}

void set(void*& slot, void* target) { __atomic_store_n(&slot, target, __ATOMIC_RELEASE); }

/// Postcondition: PMPI_X leads to `ours`; MPI_X to a tool behind us, whose own PMPI_X comes back, or else where PMPI_X
/// does.
void redirect(const gapless_variant_entry* entries, std::size_t count) {
  const Lock lock;
  state.redirected = true;
  for (int i = 0; i < function_count; ++i) {
    void* ours = implementation(entries, count, bare_name(i));
    if (ours == nullptr) continue;
    set(gapless_shim_slots[i].pmpi, ours);
    if (tool_behind_us(mpi_name(i), state.library) == nullptr) set(gapless_shim_slots[i].mpi, ours);
  }
}

/// Postcondition: no slot leads here any more. PMPI_X leads to the variant, or the library; MPI_X to a tool behind us,
/// whose own PMPI_X comes back to the variant, or else where PMPI_X does.
void fill_slots(const gapless_variant_entry* entries, std::size_t count) {
  for (int i = 0; i < function_count; ++i) {
    void* ours = implementation(entries, count, bare_name(i));
    if (ours == nullptr) ours = implementation(state.additions, state.addition_count, bare_name(i));
    if (ours == nullptr && is_addition(i)) ours = reinterpret_cast<void*>(&unsupported_addition);
    void* tool = tool_behind_us(mpi_name(i), state.library);
    set(gapless_shim_slots[i].pmpi, ours != nullptr ? ours : native(pmpi_names[i]));
    set(gapless_shim_slots[i].mpi, tool != nullptr ? tool : ours != nullptr ? ours : native(mpi_name(i)));
  }
}

void say_what_was_found() {
  std::fprintf(stderr, "gapless: %s, MPI library %s, ABI %s, variant %s%s%s\n",
               state.variant != nullptr ? "active" : "off", state.library.object->l_name, name_of(state.library.abi),
               state.variant != nullptr ? state.variant->l_name : "none", state.variant != nullptr ? "" : ": ",
               state.variant != nullptr ? "" : state.why);
}

/// False if there is no MPI library (yet).
bool set_up(const void* caller) {
  state.library = Library::find(caller);
  if (state.library.object == nullptr) return false;
  state.progress = State::resolving;
  const gapless_variant_entry* entries = nullptr;
  std::size_t count = 0;
  const bool wanted = !environment_is("GAPLESS", "0");
  if (wanted) {
    entries = open_variant(&count);
  } else {
    note("switched off by GAPLESS=0", "");
  }
  fill_slots(entries, count);
  state.progress = State::resolved;
  if (environment_is("GAPLESS_VERBOSE", "1")) {
    say_what_was_found();
  } else if (wanted && entries == nullptr) {
    std::fprintf(stderr, "gapless: off, MPI calls go straight to %s: %s\n", state.library.object->l_name, state.why);
  }
  return true;
}

const char* name_of(void** slot) {
  const std::ptrdiff_t index = slot - &gapless_shim_slots[0].mpi;
  const int function = static_cast<int>(index / 2);
  return index % 2 == 0 ? mpi_name(function) : pmpi_names[function];
}

void warn_once_of_no_library() {
  static bool warned = false;
  if (!warned)
    std::fputs(
        "gapless: an MPI function was called, but no MPI library is loaded (a program that links gapless needs "
        "-Wl,--no-as-needed before -lgapless)\n",
        stderr);
  warned = true;
}

}  // namespace

}  // namespace gapless::shim

using namespace gapless::shim;

void* gapless_shim_resolve(void** slot, const void* return_address) {
  Lock lock;
  if (state.progress == State::resolved) return *slot;
  if (state.progress == State::unresolved && set_up(return_address)) return *slot;
  const char* const name = name_of(slot);
  if (state.progress == State::resolving) return native(name);  // the variant that is being opened calls
  if (void* function = without_library(name, return_address)) return function;
  warn_once_of_no_library();
  return native(name);
}

std::size_t gapless_shim_report(char* buffer, std::size_t size) {
  Lock lock;
  if (state.progress == State::unresolved) set_up(__builtin_return_address(0));
  const bool found = state.library.object != nullptr;
  const int length =
      std::snprintf(buffer, size, "state=%s\nwhy=%s\nlibmpi=%s\nabi=%s\nvariant=%s\nredirected=%s\n",
                    state.variant != nullptr ? "active" : "disabled", state.variant != nullptr ? "" : state.why,
                    found ? state.library.object->l_name : "", found ? name_of(state.library.abi) : "",
                    state.variant != nullptr ? state.variant->l_name : "", state.redirected ? "yes" : "no");
  return length < 0 ? 0 : static_cast<std::size_t>(length);
}
