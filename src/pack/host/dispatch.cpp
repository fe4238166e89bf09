// Which implementation of the kernels runs: the best this CPU has, or the one GAPLESS_HOST_ENGINE names.

#include <atomic>
#include <cstdio>
#include <span>
#include <string_view>

#ifdef GAPLESS_X86_KERNELS
#include <cpuid.h>
#endif

#include "base/settings.hpp"
#include "pack/host/engine.hpp"
#include "pack/host/kernels/kernels.hpp"
#include "pack/host/set_conflicts.hpp"
#include "pack/host/streaming.hpp"

namespace gapless::pack::host {
namespace {

struct Available {
  const Kernels* tables[3];
  std::string_view names[3];
  std::size_t count = 0;

  Available() noexcept {
#ifdef GAPLESS_X86_KERNELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) add(avx512_kernels);
    if (__builtin_cpu_supports("avx2")) add(avx2_kernels);
#endif
    add(scalar_kernels);
  }

  void add(const Kernels& table) noexcept {
    tables[count] = &table;
    names[count++] = table.name;
  }

  const Kernels* find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (names[i] == name) return tables[i];
    }
    return nullptr;
  }
};

const Available& available() noexcept {
  static const Available result;
  return result;
}

/// AMD's families of processors; later ones are taken for the last that has been measured.
const ConflictRules& rules_of_processor() noexcept {
#ifdef GAPLESS_X86_KERNELS
  constexpr unsigned zen3_and_4 = 0x19, zen5 = 0x1a;
  unsigned version = 0, unused = 0;
  if (!__builtin_cpu_is("amd") || !__get_cpuid(1, &version, &unused, &unused, &unused)) return no_conflicts;
  const unsigned family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
  if (family >= zen5) return conflicts_of_zen5;
  if (family == zen3_and_4) return __builtin_cpu_supports("avx512f") ? conflicts_of_zen4 : conflicts_of_zen3;
#endif
  return no_conflicts;
}

}  // namespace

constinit std::atomic<const Kernels*> chosen_kernels{nullptr};
constinit std::atomic<Offset> streamed_from{streamed_from_bytes};

// A name that this CPU has nothing for falls back to the best: a variable must not end the program it was set for.
const Kernels& choose_kernels() noexcept {
  const std::string_view wanted = settings().host_engine;
  const Kernels* const named = available().find(wanted);
  const Kernels* const table = named != nullptr ? named : available().tables[0];
  use_conflict_rules(rules_of_processor());
  const Kernels* other = nullptr;
  if (!chosen_kernels.compare_exchange_strong(other, table, std::memory_order_relaxed)) return *other;
  if (named == nullptr && !wanted.empty()) {
    std::fprintf(stderr, "gapless: GAPLESS_HOST_ENGINE=%.*s: ignored; this CPU lacks its instructions\n",
                 static_cast<int>(wanted.size()), wanted.data());
  }
  return *table;
}

std::span<const std::string_view> implementations() noexcept { return {available().names, available().count}; }

std::string_view implementation() noexcept { return kernels().name; }

bool select_implementation(std::string_view name) noexcept {
  const Kernels* table = available().find(name);
  if (table != nullptr) chosen_kernels.store(table, std::memory_order_relaxed);
  return table != nullptr;
}

void use_conflict_rules(const ConflictRules& rules) noexcept {
  conflict_rules.store(&rules, std::memory_order_relaxed);
}

void stream_from(Offset bytes) noexcept { streamed_from.store(bytes, std::memory_order_relaxed); }

}  // namespace gapless::pack::host
