// The type cache under the thread sanitizer, above an MPI library reduced to what the cache asks of it: threads make,
// use and free types whose handles change hands, while others read types that the first keep pushing out of the table.
// All handles fall into one set of the table.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "layout/datatype.hpp"
#include "mpi/decode.hpp"
#include "mpi/native.hpp"
#include "mpi/runtime.hpp"
#include "mpi/type_cache.hpp"

namespace gapless::mpi {

Native native;

namespace {

constexpr int handle_count = 16, shared_count = 4, predefined_count = 2;

/// What the library knows of a handle. Its own locks order what different types do after each other, no more: the
/// attribute is atomic without ordering anything, so that the cache cannot lean on the library here.
struct Slot {
  MPI_Datatype handle;
  int blocks = 0;
  std::atomic<void*> attribute{nullptr};
};
Slot slots[handle_count];

std::mutex library_mutex;
std::vector<Slot*> unused;

Slot& slot_of(MPI_Datatype handle) {
  for (Slot& slot : slots) {
    if (slot.handle == handle) return slot;
  }
  std::abort();
}

int set_attribute(MPI_Datatype handle, int, void* value) {
  slot_of(handle).attribute.store(value, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int get_attribute(MPI_Datatype handle, int, void* value, int* found) {
  void* attribute = slot_of(handle).attribute.load(std::memory_order_relaxed);
  *static_cast<void**>(value) = attribute;
  *found = attribute != nullptr;
  return MPI_SUCCESS;
}

/// Handles that the cache keeps in one set.
void choose_handles() {
  const auto* set = &type_cache::set_of(1);
  MPI_Datatype handle = 0;
  for (Slot& slot : slots) {
    do ++handle;
    while (&type_cache::set_of(number_of(handle)) != set);
    slot.handle = handle;
  }
}

Slot& create(int blocks) {
  const std::lock_guard lock(library_mutex);
  Slot& slot = *unused.back();
  unused.pop_back();
  slot.blocks = blocks;
  return slot;
}

void destroy(Slot& slot) {
  if (void* attribute = slot.attribute.exchange(nullptr, std::memory_order_relaxed)) {
    type_cache::forget(slot.handle, 0, attribute, nullptr);
  }
  const std::lock_guard lock(library_mutex);
  unused.push_back(&slot);
}

std::atomic<int> wrong{0};

void check(const Slot& slot) {
  const TypeRecord* record = type_cache::find(slot.handle);
  const bool is_right =
      record->described != nullptr && !record->plain && record->described->layout->size == 8 * slot.blocks;
  wrong.fetch_add(!is_right, std::memory_order_relaxed);
}

constexpr int rounds = 3000;

void make_and_free(int thread) {
  for (int round = 0; round < rounds; ++round) {
    Slot& slot = create(2 + (round + thread) % 7);
    check(slot);
    check(slot);
    destroy(slot);
  }
}

void read_shared(int thread) {
  for (int round = 0; round < 4 * rounds; ++round) check(slots[(round + thread) % (shared_count + predefined_count)]);
}

int run() {
  native.Type_set_attr = set_attribute;
  native.Type_get_attr = get_attribute;
  choose_handles();
  for (int i = 0; i < handle_count; ++i) {
    slots[i].blocks = 2 + i;
    if (i >= shared_count + predefined_count) unused.push_back(&slots[i]);
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) threads.emplace_back(make_and_free, thread);
  for (int thread = 0; thread < 2; ++thread) threads.emplace_back(read_shared, thread);
  for (std::thread& thread : threads) thread.join();
  if (wrong != 0) std::fprintf(stderr, "%d wrong records\n", wrong.load());
  return wrong != 0;
}

}  // namespace

bool is_predefined(MPI_Datatype handle) noexcept {
  const auto number = &slot_of(handle) - slots;
  return number >= shared_count && number < shared_count + predefined_count;
}

std::optional<Decoded> decode(MPI_Datatype handle) noexcept {
  return Decoded{layout::vector(slot_of(handle).blocks, 1, 3, layout::named(8, 8)), 8};
}

namespace runtime {
bool start() noexcept { return true; }
int type_keyval() noexcept { return 0; }
bool is_usable(MPI_Datatype) noexcept { return true; }
}  // namespace runtime

}  // namespace gapless::mpi

int main() { return gapless::mpi::run(); }
