// What gapless counted in this process.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "support/environment.hpp"

namespace gapless::test {

namespace internal {

/// The library whose path has that in it, if it is loaded.
inline void* loaded(const char* part_of_path) {
  struct Search {
    const char* part;
    void* found = nullptr;
  } search{part_of_path};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (std::strstr(object->dlpi_name, wanted.part) == nullptr) return 0;
        wanted.found = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace internal

/// A function of libgapless-core.so, which is not in the global scope; null without gapless.
inline void* core_function(const char* name) {
  static void* const core = internal::loaded("/libgapless-core.so");
  return core != nullptr ? dlsym(core, name) : nullptr;
}
/// The same of the library for the MPI library's ABI.
inline void* variant_function(const char* name) {
  for (const char* library : {"/libgapless-mpich.so", "/libgapless-openmpi.so", "/libgapless-abi.so"}) {
    if (void* const variant = internal::loaded(library)) return dlsym(variant, name);
  }
  return nullptr;
}

/// What a function of the library's MPI variant counts; 0 without gapless.
inline std::uint64_t count_by(const char* name) {
  const auto function = reinterpret_cast<std::uint64_t (*)()>(variant_function(name));
  return function != nullptr ? function() : 0;
}
/// Nonblocking receives that need no more than a look at their end.
inline std::uint64_t receives_looked_at() { return count_by("gapless_receives_looked_at"); }
/// Those of them that have become pending messages, because of the calls that their requests went to.
inline std::uint64_t receives_promoted() { return count_by("gapless_receives_promoted"); }
/// Persistent receives that are the library's while nothing is stashed.
inline std::uint64_t short_persistent_receives() { return count_by("gapless_receives_short_persistent"); }
/// Matched messages that the program has been given, and of which gapless knows more than the library.
inline std::uint64_t matched_messages_known() { return count_by("gapless_messages_given"); }

/// What gapless knows the datatype by, for all that is learnt of messages; 0 without gapless.
inline std::uint64_t kind_of(MPI_Datatype type) {
  const auto function = reinterpret_cast<std::uint64_t (*)(MPI_Datatype)>(variant_function("gapless_kind_of_datatype"));
  return function != nullptr ? function(type) : 0;
}

/// What that function of the core counts; 0 without gapless.
inline std::uint64_t counted(const char* name) {
  const auto function = reinterpret_cast<std::uint64_t (*)()>(core_function(name));
  return function != nullptr ? function() : 0;
}
/// Messages that rings have copied out, for nobody has fetched them.
inline std::uint64_t copied_out_of_rings() { return counted("gapless_rings_copied_out"); }

/// Is gapless under this test, and told to use that scheme (GAPLESS_SCHEME)?
inline bool is_told_to_use(std::string_view name) {
  const char* scheme = std::getenv("GAPLESS_SCHEME");
  return under_gapless() && scheme != nullptr && scheme == name;
}
inline bool is_everything_packed() { return is_told_to_use("packed"); }

/// How many datatypes were analysed so far; 0 without gapless.
inline std::uint64_t analyses() {
  const auto function = reinterpret_cast<std::uint64_t (*)()>(core_function("gapless_transfer_analyses"));
  return function != nullptr ? function() : 0;
}

/// What gapless still holds after MPI_Finalize; nothing without gapless.
struct Leftovers {
  std::uint64_t requests = 0, buffers = 0, registrations = 0;
};
inline Leftovers leftovers() {
  Leftovers left;
  const auto function = reinterpret_cast<void (*)(std::uint64_t*, std::uint64_t*, std::uint64_t*)>(
      core_function("gapless_transfer_leftovers"));
  if (function != nullptr) function(&left.requests, &left.buffers, &left.registrations);
  return left;
}

namespace internal {

/// Messages so far that went by schemes `first` to `last`; 0 without gapless.
inline std::uint64_t messages_by(int first, int last) {
  const auto function =
      reinterpret_cast<void (*)(std::uint64_t*, std::uint64_t*)>(core_function("gapless_transfer_statistics"));
  std::uint64_t messages[32] = {}, bytes[32] = {};
  if (function != nullptr) function(messages, bytes);
  std::uint64_t sum = 0;
  for (int scheme = first; scheme <= last; ++scheme) sum += messages[scheme];
  return sum;
}

}  // namespace internal

/// How many messages were packed on the host so far; 0 without gapless.
inline std::uint64_t packed_messages() { return internal::messages_by(1, 1); }
/// How many of GPU memory went through segments, and how many were packed in GPU memory.
inline std::uint64_t oneshot_messages() { return internal::messages_by(2, 2); }
inline std::uint64_t pipelined_messages() { return internal::messages_by(4, 4); }
inline std::uint64_t device_messages() { return internal::messages_by(5, 5); }
inline std::uint64_t slots_messages() { return internal::messages_by(6, 6); }
inline std::uint64_t direct_messages() { return internal::messages_by(7, 7); }
inline std::uint64_t fabric_messages() { return internal::messages_by(8, 11); }
/// How many were packed by a GPU.
inline std::uint64_t gpu_messages() { return internal::messages_by(2, 5) + direct_messages(); }

/// While one lives, messages go as predicted, whatever earlier ones have taken.
class WithoutTrials {
 public:
  WithoutTrials() : before_(set(false)) {}
  ~WithoutTrials() { set(before_); }
  WithoutTrials(const WithoutTrials&) = delete;
  WithoutTrials& operator=(const WithoutTrials&) = delete;

 private:
  static bool set(bool is_on) {
    const auto function = reinterpret_cast<bool (*)(bool)>(core_function("gapless_transfer_set_correction"));
    return function != nullptr && function(is_on);
  }

  bool before_;
};

}  // namespace gapless::test
