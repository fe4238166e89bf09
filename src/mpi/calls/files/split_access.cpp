#include "mpi/calls/files/split_access.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

#include "mpi/lifetime/errors.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace split_access {
namespace {

struct Accesses {
  std::mutex mutex;  ///< guards what follows
  std::unique_ptr<Access> first;
};

// Never destroyed: files may be closed while the process ends.
Accesses& accesses() noexcept {
  static Accesses& instance = *new Accesses;
  return instance;
}

std::atomic<std::size_t> under_way{0};

std::unique_ptr<Access> take(MPI_File file) noexcept {
  Accesses& all = accesses();
  const std::lock_guard lock(all.mutex);
  for (std::unique_ptr<Access>* place = &all.first; *place != nullptr; place = &(*place)->next) {
    if ((*place)->file != file) continue;
    std::unique_ptr<Access> found = std::move(*place);
    *place = std::move(found->next);
    under_way.fetch_sub(1, std::memory_order_relaxed);
    return found;
  }
  return nullptr;
}

template <auto function, class Memory>
int end(MPI_File file, Memory* memory, MPI_Status* status) {
  requests::start_deferred();
  if (under_way.load(std::memory_order_relaxed) == 0) return (native.*function)(file, memory, status);
  const std::unique_ptr<Access> access = take(file);
  if (access == nullptr) return (native.*function)(file, memory, status);
  void* const staged = access->memory.substitute(0).memory;
  const int code = (native.*function)(file, staged != nullptr ? staged : memory, status);
  if (code != MPI_SUCCESS) return code;
  const int ours = access->memory.finish();
  return ours == MPI_SUCCESS ? code : raise_on_file(file, ours);
}

}  // namespace

void begin(std::unique_ptr<Access> access, MPI_File file) noexcept {
  access->file = file;
  Accesses& all = accesses();
  const std::lock_guard lock(all.mutex);
  access->next = std::move(all.first);
  all.first = std::move(access);
  under_way.fetch_add(1, std::memory_order_relaxed);
}

std::size_t how_many() noexcept { return under_way.load(std::memory_order_relaxed); }

}  // namespace split_access

namespace entry {

const decltype(Native::File_read_all_end) File_read_all_end = split_access::end<&Native::File_read_all_end>;
const decltype(Native::File_read_at_all_end) File_read_at_all_end = split_access::end<&Native::File_read_at_all_end>;
const decltype(Native::File_read_ordered_end) File_read_ordered_end = split_access::end<&Native::File_read_ordered_end>;
const decltype(Native::File_write_all_end) File_write_all_end = split_access::end<&Native::File_write_all_end>;
const decltype(Native::File_write_at_all_end) File_write_at_all_end = split_access::end<&Native::File_write_at_all_end>;
const decltype(Native::File_write_ordered_end) File_write_ordered_end =
    split_access::end<&Native::File_write_ordered_end>;

}  // namespace entry
}  // namespace gapless::mpi
