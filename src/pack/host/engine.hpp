// The host engine: moves bytes that the CPU can address.
//
// A job's layout, its outer repetition and its byte range are compiled on the stack to a nest of at most a few loops
// around a copy of fixed size; layouts deeper than that go through layout::Cursor. Implementations for different
// instruction sets are chosen once, at the first call (GAPLESS_HOST_ENGINE forces one by name), and agree byte for
// byte.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "pack/job.hpp"

namespace gapless::pack::host {

/// Runs the jobs in order on the calling thread. Thread-safe; performs no allocation, lock or system call for layouts
/// within the compiled nest.
void run(std::span<const Job> jobs);

/// The same for one job, which spares small messages a few nanoseconds.
void run(const Job& job);

/// Copies plain bytes as the engine copies blocks (kernels/copies.hpp says why not always by memcpy).
void copy_bytes(void* destination, const void* source, std::size_t bytes) noexcept;

/// Copies between two layouts of the same packed size in packed order, without a packed buffer of that size. Allocates
/// for two strided layouts, and where jobs of either side do.
void copy(const Layout& source, Mode source_outer, const void* source_memory, const Layout& destination,
          Mode destination_outer, void* destination_memory);

/// Names of the implementations this CPU can run, best first ("avx512", "avx2", "scalar").
std::span<const std::string_view> implementations() noexcept;
/// The one in use.
std::string_view implementation() noexcept;
/// Uses the named implementation from now on; false if this CPU or build lacks it. For tests and benchmarks.
bool select_implementation(std::string_view name) noexcept;
struct ConflictRules;
/// How rows with set conflicts are copied (set_conflicts.hpp); at first, as is best for this CPU. The rules must
/// outlive their use. For tests and benchmarks.
void use_conflict_rules(const ConflictRules& rules) noexcept;

/// Data from so many bytes on is unpacked by streaming stores (streaming.hpp). For tests.
void stream_from(layout::Offset bytes) noexcept;

}  // namespace gapless::pack::host
