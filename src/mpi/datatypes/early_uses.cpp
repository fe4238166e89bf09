#include "mpi/datatypes/early_uses.hpp"

#include <algorithm>

#include "device/device.hpp"
#include "model/model.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/datatypes/decode.hpp"
#include "mpi/datatypes/pieces.hpp"
#include "mpi/datatypes/type_cache.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::mpi::early_uses {

constinit std::array<Set, std::size_t{1} << set_bits> sets{};
constinit Prices prices{};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// Of a long list: packed bytes of one, and what its description lists. In the order of the sets and their ways.
struct List {
  std::atomic<float> bytes;
  std::atomic<float> entries;
};
constinit std::array<std::array<List, ways>, std::size_t{1} << set_bits> lists{};

/// A datatype's place in the tables.
struct Uses {
  std::atomic<std::uintptr_t>& handle;
  std::atomic<float>&left_ns, &element_ns;
  List& list;

  Uses(Set& set, std::size_t way) noexcept
      : handle(set.handles[way]),
        left_ns(set.left_ns[way]),
        element_ns(set.element_ns[way]),
        list(lists[static_cast<std::size_t>(&set - sets.data())][way]) {}

  bool is_long_list() const noexcept { return element_ns.load(relaxed) < 0; }

  void begin(MPI_Count bytes) const noexcept {
    left_ns.store(prices.analysis_ns, relaxed);
    element_ns.store(prices.byte_ns * static_cast<float>(bytes), relaxed);
  }

  /// Raises the price of the analysis of a long list. False if the datatype is none.
  bool weigh(MPI_Datatype datatype, MPI_Count bytes) const noexcept {
    const model::Analysis& analysis = model::profile().analysis;
    const DescriptionLength length = description_length(datatype);
    const double more_ns = length.entries * analysis.entry_ns + length.types * analysis.start_ns;
    if (more_ns <= analysis.start_ns) return false;
    left_ns.store(static_cast<float>(more_ns), relaxed);
    element_ns.store(-1, relaxed);
    list.entries.store(static_cast<float>(length.entries), relaxed);
    list.bytes.store(static_cast<float>(bytes), relaxed);
    return true;
  }

  float cost_ns(MPI_Count count) const noexcept {
    return prices.use_ns + static_cast<float>(count) * element_ns.load(relaxed);
  }

  /// A list that takes long to analyse takes long to pack as well, so what counts is what would be saved.
  float saved_ns(MPI_Count count, Purpose purpose) const noexcept {
    const double elements = static_cast<double>(count), entries = elements * list.entries.load(relaxed);
    const model::Amount amount{elements * list.bytes.load(relaxed), entries, entries};
    const double saved = purpose == Purpose::packing ? model::pack_saving_ns(amount) : saved_in_message_ns(amount);
    return std::max(static_cast<float>(saved), 0.0f);
  }

 private:
  /// By the better way: packed, or by slots where messages may go by header. (Nobody has asked where the peer is.)
  static double saved_in_message_ns(const model::Amount& amount) noexcept {
    const double packed = model::message_saving_ns(amount);
    const bool may = transfer::headers::is_listening() && transfer::schemes::may_take_slots(amount.bytes);
    return may ? std::max(packed, model::slots_over_native_ns(amount)) : packed;
  }
};

/// Is what is left little beside this use?
bool is_little(float left_ns, float cost_ns) noexcept {
  constexpr float many = 16;
  return cost_ns >= many * left_ns;
}

/// Is the analysis due, after all uses so far or because it is little beside this one?
bool is_due(float cost_ns, float left_ns) noexcept { return left_ns <= 0 || is_little(left_ns, cost_ns); }

bool spend(const Uses& uses, float cost_ns) noexcept {
  const float left_ns = uses.left_ns.load(relaxed);
  const bool leave = !is_due(cost_ns, left_ns);
  uses.left_ns.store(leave ? std::max(left_ns - cost_ns, 0.0f) : 0, relaxed);
  return leave;
}

/// Might the library read or write GPU memory? The first byte is not known yet: the library's bounds may be wider than
/// what is named, so they and the origin are all looked at. Blocks at absolute addresses may lie anywhere.
bool may_name_gpu_memory(const void* memory, MPI_Datatype datatype) noexcept {
  if (is_null_with_displacement(memory) || is_gpu_memory(memory)) return true;
  MPI_Count lower = 0, extent = 0;
  if (native.Type_get_true_extent_x(datatype, &lower, &extent) != MPI_SUCCESS) return true;
  return is_gpu_memory(address_of(memory, lower)) || is_gpu_memory(address_of(memory, lower + extent - 1));
}

/// Might the library lose elements of this use, if a process sends them to itself in a collective?
bool may_lose_end(MPI_Count count, MPI_Datatype datatype) noexcept {
  if (!library_loses_ends_of_own_parts || count < 2) return false;
  const MPI_Count size = runtime::size_of(datatype);
  if (size <= 0 || !would_lose_end_of_own_part(static_cast<std::size_t>(size), static_cast<std::size_t>(count)))
    return false;
  MPI_Count lower = 0, extent = 0;
  return native.Type_get_true_extent_x(datatype, &lower, &extent) != MPI_SUCCESS || extent == size;
}

/// Might the library not be able to serve this use? Beside a GPU: it reads no GPU memory, and MPICH loses elements of
/// messages that a GPU has packed.
bool may_need_us(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept {
  if (may_lose_end(count, datatype)) return true;
  if (!device::in_use()) return false;
  const MPI_Count size = runtime::size_of(datatype);
  MPI_Count bytes = 0;
  if (size < 0 || __builtin_mul_overflow(size, count, &bytes)) return true;
  const bool is_cut = bytes > 0 && is_long_enough_to_be_cut(static_cast<std::size_t>(bytes));
  return (library_loses_cut_elements && is_cut) || may_name_gpu_memory(memory, datatype);
}

/// The uses that are more than counted: of a long list, of a datatype that must be weighed first.
[[gnu::noinline]] bool leave_slowly(const Uses& uses, MPI_Count count, MPI_Datatype datatype,
                                    Purpose purpose) noexcept {
  const float cost_ns = uses.cost_ns(count);
  // The use that spends what is left is weighed first: the analysis may take longer than that.
  if (!uses.is_long_list() && cost_ns < uses.left_ns.load(relaxed)) return spend(uses, cost_ns);
  const MPI_Count bytes = runtime::size_of(datatype);
  if (bytes < 0) return false;
  // A long list waits long, so it is made sure that the handle still means it.
  if (uses.is_long_list() && static_cast<float>(bytes) != uses.list.bytes.load(relaxed)) uses.begin(bytes);
  if (!uses.is_long_list() && !uses.weigh(datatype, bytes)) return spend(uses, cost_ns);
  return spend(uses, uses.saved_ns(count, purpose));
}

const TypeRecord* record_of(MPI_Datatype datatype, bool leave) noexcept {
  return leave ? &type_cache::not_ours : type_cache::find_slowly(datatype);
}

[[gnu::noinline]] const TypeRecord* record_for_use_slowly(const void* memory, MPI_Count count, MPI_Datatype datatype,
                                                          Purpose purpose, Set& set, std::size_t way) noexcept {
  const Uses uses(set, way);
  return record_of(datatype, !may_need_us(memory, count, datatype) &&
                                 leave_slowly(uses, std::max<MPI_Count>(count, 0), datatype, purpose));
}

/// Now and then a datatype gives way in a crowded set: it may have been freed past us. Mostly it is in use, and so its
/// uses must come to an end before they are forgotten.
void make_room(Set& set) noexcept {
  constexpr std::size_t now_and_then = 4096;
  static constinit std::atomic<std::size_t> turn{0};
  const std::size_t times = turn.fetch_add(1, relaxed);
  if (times % now_and_then == 0) set.handles[times / now_and_then % ways].store(0, relaxed);
}

/// A use of a datatype that has no place yet. If its set is crowded, it is analysed at once.
[[gnu::noinline]] const TypeRecord* record_for_first_use(const void* memory, MPI_Count count, MPI_Datatype datatype,
                                                         Purpose purpose) noexcept {
  const std::uintptr_t number = number_of(datatype);
  if (number == 0 || datatype == MPI_DATATYPE_NULL || !prices.are_counted || !runtime::start() ||
      may_need_us(memory, count, datatype)) {
    return type_cache::find_slowly(datatype);
  }
  const MPI_Count bytes = runtime::size_of(datatype);
  if (bytes < 0) return type_cache::find_slowly(datatype);
  const float element_ns = prices.byte_ns * static_cast<float>(bytes);
  const float cost_ns = prices.use_ns + static_cast<float>(count) * element_ns;
  const bool is_large = is_little(prices.analysis_ns, cost_ns);
  // To weigh the datatype takes a part of what one of the library's uses does: the second use is soon enough.
  constexpr float next_to_nothing = 1;
  const float left_ns = is_large ? prices.analysis_ns : std::max(prices.analysis_ns - cost_ns, next_to_nothing);
  Set& set = set_of(number);
  const std::size_t way = way_of(set, 0);
  if (way == ways) {
    make_room(set);
    return type_cache::find_slowly(datatype);
  }
  enter(set, way, number, element_ns, left_ns);
  if (!is_large) return &type_cache::not_ours;
  return record_for_use_slowly(memory, count, datatype, purpose, set, way);
}

}  // namespace

const TypeRecord* record_for_use(const void* memory, MPI_Count count, MPI_Datatype datatype, Purpose purpose) noexcept {
  const std::uintptr_t number = number_of(datatype);
  Set& set = set_of(number);
  const std::size_t way = number != 0 ? way_of(set, number) : ways;
  if (way == ways) return record_for_first_use(memory, count, datatype, purpose);
  if (set.left_ns[way].load(relaxed) <= 0) return type_cache::find_slowly(datatype);
  return record_for_use_slowly(memory, count, datatype, purpose, set, way);
}

void set_prices() noexcept {
  const model::Profile& profile = model::profile();
  const model::UseCost& use = profile.host.first_uses;
  const bool are_counted = !transfer::is_forced(transfer::Scheme::packed);
  const double short_bytes = profile.analysis.start_ns / 16 / use.byte_ns;
  prices = {.are_counted = are_counted,
            .use_ns = static_cast<float>(use.start_ns),
            .byte_ns = static_cast<float>(use.byte_ns),
            .analysis_ns = static_cast<float>(profile.analysis.start_ns),
            .short_bytes = are_counted ? static_cast<MPI_Count>(short_bytes) : 0};
}

void clear_table() noexcept {
  for (Set& set : sets) {
    for (auto& handle : set.handles) handle.store(0, relaxed);
  }
}

}  // namespace gapless::mpi::early_uses
