// First use of a datatype, and its end.
#include "mpi/datatypes/type_cache.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/scoped_value.hpp"
#include "device/device.hpp"
#include "layout/algebra/cursor.hpp"
#include "layout/algebra/facts.hpp"
#include "mpi/datatypes/contents.hpp"
#include "mpi/datatypes/decode.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/entry_points.hpp"
#include "mpi/table/native.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::mpi::type_cache {

alignas(64) constinit std::array<Set, std::size_t{1} << set_bits> sets{};

const TypeRecord not_ours;

namespace {

using transfer::Described;

/// For a valid datatype that there is no memory to analyse, as there may be at its next use.
const TypeRecord not_understood({.opaque = true});

// Never destroyed: delete callbacks may come while the process ends.
struct Records {
  std::mutex mutex;  ///< guards the two below
  std::deque<TypeRecord> all;
  std::vector<TypeRecord*> unused;

  std::mutex analysis;  ///< one analysis at a time; the delete callback never takes it, for it may come from inside one
  std::unordered_map<std::uintptr_t, TypeRecord*> predefined;

  // Layouts of live datatypes by hash, so that equal types share one.
  static constexpr std::size_t shared_count = 1024;
  std::array<std::weak_ptr<const layout::Layout>, shared_count> shared;
};

Records& records() {
  static Records& instance = *new Records;
  return instance;
}

TypeRecord* new_record() {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  if (all.unused.empty()) {
    all.unused.reserve(all.all.size() + 1);  // so that recycle() never allocates
    return &all.all.emplace_back();
  }
  TypeRecord* record = all.unused.back();
  all.unused.pop_back();
  return record;
}

/// A small description ends when its record describes another datatype, since ending it takes longer than the library
/// takes to free a datatype.
void recycle(TypeRecord* record) noexcept {
  record->handle.store(TypeRecord::no_handle, std::memory_order_release);
  if (record->is_large) record->described.reset();
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  all.unused.push_back(record);
}

void enter_table(TypeRecord* record) noexcept {
  const std::uintptr_t number = record->handle.load(std::memory_order_relaxed);
  Set& set = set_of(number);
  for (auto& way : set) {
    TypeRecord* expected = nullptr;
    if (way.compare_exchange_strong(expected, record, std::memory_order_release)) return;
  }
  static std::atomic<std::size_t> turn{0};
  set[turn.fetch_add(1, std::memory_order_relaxed) % ways].store(record, std::memory_order_release);
}

layout::LayoutPointer share(const layout::LayoutPointer& layout, std::uint64_t hash) {
  auto& slot = records().shared[hash % Records::shared_count];
  if (auto known = slot.lock(); known && *known == *layout) return known;
  slot = layout;
  return layout;
}

/// Does every element lie at a multiple of its size from the first byte of memory? False where that takes long to find
/// out.
bool are_aligned(const Described& described, const Decoded& decoded) {
  const layout::Offset widest = decoded.widest_element, size = described.layout->size;
  if (widest <= 1 || (described.facts.alignment % widest == 0 && described.extent % widest == 0)) return true;
  if (described.extent % widest != 0 || described.elements == nullptr) return false;
  constexpr int most_elements = 16;
  layout::Offset begin = 0;
  for (int i = 0; i < most_elements && begin < size; ++i) {
    layout::Offset end = begin + 1;
    while (end < size && described.elements->whole(end) != end) ++end;
    const layout::Offset offset = layout::offset_of(*described.layout, begin);
    // To elements_of() a pair is one element, to the library two.
    if (offset % std::min(end - begin, widest) != 0) return false;
    begin = end;
  }
  return begin == size;
}

/// Where packed bytes begin at the first byte of memory: how many lie together there, as far as a nonce.
std::uint8_t first_bytes_together(const layout::Layout& layout, layout::Offset first_byte) {
  constexpr auto most = static_cast<layout::Offset>(sizeof(transfer::headers::Nonce));
  layout::Offset bytes = 0;
  while (bytes < std::min(most, layout.size) && layout::offset_of(layout, bytes) == first_byte + bytes) ++bytes;
  return static_cast<std::uint8_t>(bytes);
}

std::intptr_t true_lower_bound_of(MPI_Datatype handle) noexcept {
  MPI_Count lower = 0, extent = 0;
  const int code = native.Type_get_true_extent_x(handle, &lower, &extent);
  return code == MPI_SUCCESS ? static_cast<std::intptr_t>(lower) : 0;
}

/// Where a datatype of absolute addresses, for MPI_BOTTOM, names a GPU's memory that is not reached together with the
/// rest: by the CPU, or by the GPU whose memory the lowest byte lies in. More runs than are looked at are taken to be.
std::optional<std::intptr_t> gpu_memory_beside_other(const layout::Layout& layout, layout::Offset lowest) {
  constexpr layout::Offset lowest_address = 65536;  // Linux maps nothing below
  constexpr int most_runs = 4096;
  if (!device::in_use() || lowest < lowest_address) return std::nullopt;
  device::Locator locator;
  const device::Location taken_for = locator.locate(reinterpret_cast<const void*>(lowest));
  const bool is_on_host = taken_for.is_cpu_addressable();
  layout::Cursor runs(layout, {1, 0}, 0, layout.size);
  layout::Segment run{};
  for (int k = 0; k < most_runs && runs.next(run); ++k) {
    const device::Location found = locator.locate(reinterpret_cast<const void*>(run.offset));
    const bool is_reached = is_on_host ? found.is_cpu_addressable() : found.is_gpu_addressable(taken_for.device);
    if (!is_reached) return is_on_host ? run.offset : lowest;
  }
  return std::nullopt;
}

void describe(MPI_Datatype handle, TypeProperties& record) {
  record = {};
  const auto decoded = decode(handle);
  if (!decoded) {
    record.opaque = true;
    record.first_byte = true_lower_bound_of(handle);
    return;
  }
  record.is_empty = decoded->datatype.size() == 0;
  if (record.is_empty) return;
  const layout::Datatype& datatype = decoded->datatype;
  Described described;
  const std::uint64_t hash = layout::hash(*datatype.layout);
  described.layout = share(datatype.layout, hash);
  described.facts = layout::facts_of(*described.layout);
  if (const auto on_gpu = gpu_memory_beside_other(*described.layout, described.facts.true_lower_bound)) {
    record.opaque = true;
    record.first_byte = *on_gpu;
    return;
  }
  described.extent = datatype.extent();
  described.elements = decoded->elements;
  described.has_long_doubles = decoded->has_long_doubles;
  described.contiguous_repeats = described.layout->is_contiguous() && described.extent == described.layout->size;
  described.is_lost_in_pieces =
      library_loses_unaligned_elements && !described.contiguous_repeats && !are_aligned(described, *decoded);
  described.may_be_cut = library_may_cut(decoded->aligned_element != 0, decoded->widest_element);
  record.plain = described.contiguous_repeats;
  const transfer::Buffer one{&described, 1, nullptr, {}};
  // The record outlives the message that is under way, which may be one that tries a way.
  const auto as_predicted = transfer::choose_always(transfer::HostWay::predicted);
  const bool is_native = transfer::choose(one, transfer::Side::sender) == transfer::Scheme::native;
  const bool is_listening = transfer::headers::is_listening(), is_whole = !described.is_lost_in_pieces;
  record.one_is_native_in_message = is_native && is_whole && !(is_listening && transfer::goes_by_header(one));
  record.one_is_native_in_request =
      is_whole && (is_native || !(transfer::is_worth_a_request(one) || transfer::goes_by_fabric(one))) &&
      !(is_listening && transfer::goes_by_header(one, true));
  record.size = described.layout->size;
  record.kind = mix(hash, static_cast<std::uint64_t>(described.extent)) | 1;
  record.one_is_lost_beside_gpu =
      !record.plain && would_lose_elements(static_cast<std::size_t>(record.size), described);
  const bool takes_headers = takes_header_as_elements(described);
  record.takes_headers = takes_headers && record.plain;
  if (takes_headers && !record.plain && is_whole)
    record.bytes_of_scattered_header = first_bytes_together(*described.layout, described.facts.true_lower_bound);
  record.one_is_native_in_packing = transfer::choose_packing(one) == transfer::Scheme::native;
  record.part_saving_ns = record.plain ? 0 : static_cast<float>(transfer::part_saving_ns(one));
  record.first_byte = described.facts.true_lower_bound;
  constexpr std::size_t small = 16384;
  record.is_large = layout::memory_bytes(*described.layout) > small;
  record.described = std::make_shared<const Described>(std::move(described));
}

TypeRecord* analyse(MPI_Datatype handle, bool predefined) {
  transfer::record_analysis();
  TypeRecord* record = new_record();
  try {
    describe(handle, *record);
    record->is_predefined = predefined;
  } catch (const std::exception&) {
    recycle(record);
    throw;
  }
  if (!predefined && native.Type_set_attr(handle, runtime::type_keyval(), record) != MPI_SUCCESS) {
    recycle(record);
    return nullptr;
  }
  record->handle.store(number_of(handle), std::memory_order_release);
  return record;
}

TypeRecord* find_or_analyse(MPI_Datatype handle) {
  Records& all = records();
  const std::lock_guard lock(all.analysis);
  if (is_predefined(handle)) {
    TypeRecord*& record = all.predefined[number_of(handle)];
    if (record == nullptr) record = analyse(handle, true);
    return record;
  }
  void* attribute = nullptr;
  int found = 0;
  if (native.Type_get_attr(handle, runtime::type_keyval(), &attribute, &found) != MPI_SUCCESS) return nullptr;
  return found != 0 ? static_cast<TypeRecord*>(attribute) : analyse(handle, false);
}

// Does this thread analyse a datatype? Then types not known yet are the library's business, which may call its own
// interposed functions.
constinit thread_local bool is_analysing [[gnu::tls_model("initial-exec")]] = false;
// The number of the datatype that this thread frees; 0: none. Delete callbacks of the program may use the datatype when
// its description has ended already. A new one would never end, and be taken for that of the next datatype with the
// same handle. Where the library refuses, the program's error handler may leave the call by longjmp, and the number
// stays: so that it is no predefined datatype's, frees of those are told apart first.
constinit thread_local std::uintptr_t being_freed [[gnu::tls_model("initial-exec")]] = 0;

/// Reads no other datatype's record: one that was not used for long is in no cache.
inline void leave_table(std::uintptr_t number, const TypeRecord* record) noexcept {
#pragma GCC unroll 4
  for (auto& way : set_of(number)) {
    TypeRecord* found = way.load(std::memory_order_relaxed);
    if (found == nullptr || found != record) continue;
    way.compare_exchange_strong(found, nullptr, std::memory_order_release, std::memory_order_relaxed);
  }
}

// Numbers of datatypes that have been freed, or that the program has tried to free. A handle that a datatype of the
// program has had is never a predefined datatype's, nor is one that the library does not accept, so the library need
// not be asked whether it is.
constinit std::array<std::atomic<std::uintptr_t>, 64> constructed{};

/// Precondition: no record of the datatype is known.
inline bool is_constructed(MPI_Datatype handle, std::uintptr_t number) noexcept {
  std::atomic<std::uintptr_t>& known = constructed[place_of<constructed.size()>(handle)];
  if (known.load(std::memory_order_relaxed) == number) [[likely]]
    return true;
  // The question whether it is predefined is an error of its own where the handle is invalid.
  const bool is_usable = !runtime::start() || runtime::is_usable(handle);
  if (is_usable && is_predefined(handle)) return false;
  known.store(number, std::memory_order_relaxed);
  return true;
}

// Open MPI calls no more delete callbacks once one has failed, and ends the datatype all the same.
int free_type(MPI_Datatype* datatype) {
  if (datatype == nullptr || *datatype == MPI_DATATYPE_NULL) return native.Type_free(datatype);
  const TypeRecord* record = find_in_table(*datatype);
  const std::uintptr_t number = number_of(*datatype);
  if (record != nullptr ? record->is_predefined : !is_constructed(*datatype, number)) return native.Type_free(datatype);
  const ScopedValue while_it_ends(being_freed, number);
  const int code = native.Type_free(datatype);
  if (code == MPI_SUCCESS) {
    leave_table(number, record);
    early_uses::forget(number);
  }
  return code;
}

}  // namespace

const TypeRecord* find_slowly(MPI_Datatype handle) noexcept {
  if (is_analysing || number_of(handle) == being_freed) return &not_ours;
  if (handle == MPI_DATATYPE_NULL || !runtime::start()) return &not_ours;
  const ScopedValue meanwhile(is_analysing, true);
  if (!runtime::is_usable(handle)) return &not_ours;
  TypeRecord* record = nullptr;
  try {
    record = find_or_analyse(handle);
  } catch (const std::exception&) {
    return &not_understood;
  }
  if (record == nullptr) return &not_ours;
  enter_table(record);
  return record;
}

void clear_table() noexcept {
  for (Set& set : sets) {
    for (auto& way : set) way.store(nullptr, std::memory_order_release);
  }
  Records& all = records();
  const std::lock_guard lock(all.analysis);
  for (const auto& [number, record] : all.predefined) {
    if (record != nullptr) recycle(record);
  }
  all.predefined.clear();
}

int forget(MPI_Datatype, int, void* value, void*) {
  auto* record = static_cast<TypeRecord*>(value);
  leave_table(record->handle.load(std::memory_order_acquire), record);
  recycle(record);
  return MPI_SUCCESS;
}

}  // namespace gapless::mpi::type_cache

namespace gapless::mpi::entry {

const decltype(Native::Type_free) Type_free = type_cache::free_type;

}  // namespace gapless::mpi::entry

std::uint64_t gapless_kind_of_datatype(MPI_Datatype handle) { return gapless::mpi::type_cache::kind_of(handle); }
