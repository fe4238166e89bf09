// The type cache under the thread sanitizer, above an MPI library reduced to what the cache asks of it: threads make,
// use and free types whose handles change hands, while others read types that the first keep pushing out of the table.
// All handles fall into one set of the table.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "layout/datatype/datatype.hpp"
#include "mpi/datatypes/decode.hpp"
#include "mpi/datatypes/type_cache.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/report/statistics.hpp"

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

/// Uses of a datatype that is not analysed yet may be the library's.
enum class Use { early, ours };

void check(const Slot& slot, Use use) {
  const TypeRecord* record = use == Use::ours ? type_cache::find(slot.handle)
                                              : type_cache::find_for_use(&slot, 1, slot.handle, Purpose::packing);
  const bool is_right =
      (use == Use::early && record == &type_cache::not_ours) ||
      (record->described != nullptr && !record->plain && record->described->layout->size == 8 * slot.blocks);
  wrong.fetch_add(!is_right, std::memory_order_relaxed);
}

constexpr int rounds = 3000;

void make_and_free(int thread) {
  for (int round = 0; round < rounds; ++round) {
    Slot& slot = create(2 + (round + thread) % 7);
    for (int k = 0; k < (round + thread) % 40; ++k) check(slot, Use::early);
    if (round % 2 == 0) check(slot, Use::ours);
    destroy(slot);
    // Not after every end: a datatype may be freed past us.
    if (round % 3 != 0) early_uses::forget(number_of(slot.handle));
  }
}

void read_shared(int thread) {
  for (int round = 0; round < 4 * rounds; ++round) {
    check(slots[(round + thread) % (shared_count + predefined_count)], round % 3 == 0 ? Use::early : Use::ours);
  }
}

std::atomic<bool> has_memory{true};

/// With nobody beside.
void use_without_memory() {
  Slot& slot = create(5);
  has_memory = false;
  const TypeRecord* record = type_cache::find(slot.handle);
  wrong += record->described != nullptr || !record->opaque;
  has_memory = true;
  check(slot, Use::ours);
  destroy(slot);
}

/// The library may give the handle of a predefined datatype to another one once it has ended.
void use_again_after_the_end() {
  Slot& slot = slots[shared_count];
  check(slot, Use::ours);
  type_cache::clear_table();
  ++slot.blocks;
  check(slot, Use::ours);
}

/// A message may try a way other than the predicted one; the record of its datatype outlives the message.
void describe_within_a_trial() {
  Slot& slot = create(6);
  const auto trial = transfer::choose_always(transfer::HostWay::native);
  wrong += type_cache::find(slot.handle)->one_is_native_in_message;
  destroy(slot);
}

int run() {
  native.Type_set_attr = set_attribute;
  native.Type_get_attr = get_attribute;
  choose_handles();
  early_uses::set_prices();
  for (int i = 0; i < handle_count; ++i) {
    slots[i].blocks = 2 + i;
    if (i >= shared_count + predefined_count) unused.push_back(&slots[i]);
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) threads.emplace_back(make_and_free, thread);
  for (int thread = 0; thread < 2; ++thread) threads.emplace_back(read_shared, thread);
  for (std::thread& thread : threads) thread.join();
  use_without_memory();
  describe_within_a_trial();
  use_again_after_the_end();
  if (wrong != 0) std::fprintf(stderr, "%d wrong records\n", wrong.load());
  return wrong != 0;
}

}  // namespace

bool is_predefined(MPI_Datatype handle) noexcept {
  const auto number = &slot_of(handle) - slots;
  return number >= shared_count && number < shared_count + predefined_count;
}

std::optional<Decoded> decode(MPI_Datatype handle) {
  if (!has_memory) throw std::bad_alloc();
  return Decoded{layout::vector(slot_of(handle).blocks, 1, 3, layout::named(8, 8)), 8};
}

DescriptionLength description_length(MPI_Datatype) noexcept { return {}; }

namespace runtime {
bool start() noexcept { return true; }
int type_keyval() noexcept { return 0; }
bool is_usable(MPI_Datatype) noexcept { return true; }
MPI_Count size_of(MPI_Datatype handle) noexcept { return 8 * slot_of(handle).blocks; }
}  // namespace runtime

}  // namespace gapless::mpi

namespace gapless::device {
namespace internal {
std::atomic<Oracle> oracle{Oracle::nobody};
Oracle look() noexcept { return Oracle::nobody; }
}  // namespace internal
Location locate(const void*) noexcept { return {}; }
Location Locator::locate(const void*) noexcept { return {}; }
}  // namespace gapless::device

namespace gapless::transfer {
namespace {
thread_local HostWay in_force = HostWay::predicted;
}
ScopedValue<HostWay> choose_always(HostWay way) noexcept { return {in_force, way}; }
Scheme choose(const Buffer&, Side) noexcept { return in_force == HostWay::predicted ? Scheme::packed : Scheme::native; }
Scheme choose_packing(const Buffer&) noexcept { return Scheme::packed; }
bool goes_by_header(const Buffer&, bool) noexcept { return false; }
bool is_worth_a_request(const Buffer&) noexcept { return true; }
bool goes_by_fabric(const Buffer&) noexcept { return false; }
bool is_forced(Scheme) noexcept { return false; }
double part_saving_ns(const Buffer&) noexcept { return 0; }
namespace headers::internal {
constinit std::atomic<bool> listening{false};
}
void record_analysis() noexcept {}
}  // namespace gapless::transfer

int main() { return gapless::mpi::run(); }
