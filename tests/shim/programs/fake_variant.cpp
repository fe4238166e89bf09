// A variant that passes every call on and counts it, without knowing any MPI type: arguments are integers or pointers,
// so forwarding fourteen of them forwards whatever a function has. At the end it writes "name count" lines to the file
// that GAPLESS_TEST_COUNTS names.
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "mpi/table/variant.hpp"

namespace {

using Function = long (*)(long, long, long, long, long, long, long, long, long, long, long, long, long, long);

thread_local int depth = 0;

#define GAPLESS_FORWARD(name)                                                                                         \
  Function native_##name;                                                                                             \
  unsigned long count_##name;                                                                                         \
  long forward_##name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, \
                      long m, long n) {                                                                               \
    if (depth == 0) ++count_##name;                                                                                   \
    ++depth;                                                                                                          \
    long result = native_##name(a, b, c, d, e, f, g, h, i, j, k, l, m, n);                                            \
    --depth;                                                                                                          \
    return result;                                                                                                    \
  }
#define GAPLESS_FORWARD_intercepted GAPLESS_FORWARD
#define GAPLESS_FORWARD_guarded GAPLESS_FORWARD
#define GAPLESS_FORWARD_waiting GAPLESS_FORWARD
#define GAPLESS_FORWARD_endpoints(name)
#define GAPLESS_FORWARD_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_FORWARD_##mark(name)
#include "mpi/table/functions.def"

struct Row {
  const char* name;
  const char* pmpi_name;
  Function forward;
  Function* native;
  unsigned long* count;
};

#define GAPLESS_ROW_intercepted(name) {#name, "PMPI_" #name, &forward_##name, &native_##name, &count_##name},
#define GAPLESS_ROW_guarded GAPLESS_ROW_intercepted
#define GAPLESS_ROW_waiting GAPLESS_ROW_intercepted
#define GAPLESS_ROW_endpoints(name)
#define GAPLESS_ROW_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_ROW_##mark(name)
const Row rows[] = {
#include "mpi/table/functions.def"
};

gapless_variant_entry entries[std::size(rows)];

__attribute__((destructor)) void write_counts() {
  const char* path = std::getenv("GAPLESS_TEST_COUNTS");
  FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  for (const Row& row : rows) {
    if (*row.count != 0) std::fprintf(file, "%s %lu\n", row.name, *row.count);
  }
  std::fclose(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const gapless_variant_entry* gapless_variant_open(
    gapless_find_symbol find, void* context, std::size_t* count, const char** why) {
  if (const char* reason = std::getenv("GAPLESS_TEST_REFUSE")) {
    *why = reason;
    return nullptr;
  }
  *count = 0;
  for (const Row& row : rows) {
    *row.native = reinterpret_cast<Function>(find(row.pmpi_name, context));
    if (*row.native != nullptr) entries[(*count)++] = {row.name, reinterpret_cast<void*>(row.forward)};
  }
  return entries;
}
