#include "transfer/rdma/memory/user_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "layout/algebra/canonical.hpp"

namespace gapless::transfer::rdma {
namespace {

constexpr std::size_t most_kept = 4096;  // ranges, of a list that waits for the next message

void list_blocks(const Memory& memory, std::vector<fabric::Range>& blocks) {
  blocks.clear();
  layout::Cursor cursor(*memory.layout, memory.outer, 0, memory.size());
  for (layout::Segment run; cursor.next(run);) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.origin) + static_cast<std::uintptr_t>(run.offset);
    const auto end = begin + static_cast<std::uintptr_t>(run.length);
    if (!blocks.empty() && blocks.back().end == begin) {
      blocks.back().end = end;
    } else {
      blocks.push_back({begin, end});
    }
  }
}

}  // namespace

Blocks blocks_of(const layout::Facts& facts, const layout::Layout& layout, layout::Mode outer) noexcept {
  if (layout.is_empty() || outer.count == 0) return {};
  const auto number = [](layout::Offset value) { return static_cast<std::uint64_t>(value); };
  const bool is_one_block = facts.block_count == 1 && outer.stride == layout.size;
  return {number(facts.size * outer.count), number(is_one_block ? 1 : facts.block_count * outer.count),
          number(is_one_block ? facts.size * outer.count : facts.longest_block),
          number(facts.true_upper_bound - facts.true_lower_bound + (outer.count - 1) * std::abs(outer.stride))};
}

Memory memory_of(const layout::LayoutPointer& layout, const layout::Facts& facts, layout::Mode outer, void* origin) {
  return {layout, outer, static_cast<std::byte*>(origin), blocks_of(facts, *layout, outer)};
}

Memory packed_memory(std::byte* packed, std::uint64_t bytes) {
  const auto size = static_cast<layout::Offset>(bytes);
  const layout::LayoutPointer contiguous = layout::block(0, size);
  return memory_of(contiguous, layout::facts_of(*contiguous), {1, size}, packed);
}

bool UserMemory::acquire(const Memory& memory, const fabric::RegistrationCost& cost, std::size_t most,
                         fabric::Use use) noexcept try {
  release();
  if (memory.region != nullptr) {
    regions_.push_back(memory.region);  // the cache does not know this region, and ignores its release
    return true;
  }
  regions_.reserve(most);
  const bool is_held = acquire_blocks(memory, cost, most, use);
  trim();
  return is_held;
} catch (const std::bad_alloc&) {
  release();
  trim();
  return false;
}

bool UserMemory::acquire_blocks(const Memory& memory, const fabric::RegistrationCost& cost, std::size_t most,
                                fabric::Use use) {
  list_blocks(memory, blocks_);
  groups_ = blocks_;
  fabric::group(groups_, cost);
  if (groups_.size() > most) return false;
  std::size_t next = 0;  // among the sorted blocks
  bool is_sorted = false;
  for (const fabric::Range& range : groups_) {
    if (acquire_range(range, most, use)) continue;
    // The group was optimistic: some gaps between its blocks may be no memory.
    if (!is_sorted) fabric::group(blocks_, {.operation_ns = 1e-9, .page_ns = 1});
    is_sorted = true;
    while (next < blocks_.size() && blocks_[next].begin < range.begin) ++next;
    bool is_alone = true;
    for (; next < blocks_.size() && blocks_[next].end <= range.end; ++next) {
      is_alone = is_alone && blocks_[next] == range;
      if (is_alone || !acquire_range(blocks_[next], most, use)) {
        release();
        return false;
      }
    }
  }
  std::sort(regions_.begin(), regions_.end(),
            [](const fabric::Region* a, const fabric::Region* b) { return a->memory < b->memory; });
  return true;
}

bool UserMemory::acquire_range(const fabric::Range& range, std::size_t most, fabric::Use use) {
  const auto* const begin = reinterpret_cast<const std::byte*>(range.begin);
  const std::size_t bytes = range.end - range.begin;
  if (find(begin, bytes) != nullptr) return true;  // held already
  if (regions_.size() == most) return false;
  const fabric::Region* region = cache_.acquire(begin, bytes, use);
  if (region == nullptr) return false;
  regions_.push_back(region);
  return true;
}

void UserMemory::trim() noexcept {
  for (auto* ranges : {&blocks_, &groups_}) {
    if (ranges->capacity() > most_kept) std::vector<fabric::Range>().swap(*ranges);
  }
}

void UserMemory::release() noexcept {
  for (const fabric::Region* region : regions_) cache_.release(region);
  regions_.clear();
}

void UserMemory::revoke() noexcept {
  for (const fabric::Region* region : regions_) cache_.revoke(region);
  regions_.clear();
}

const fabric::Region* UserMemory::find(const std::byte* block, std::size_t bytes) const noexcept {
  for (const fabric::Region* region : regions_) {
    if (region->covers(block, bytes)) return region;
  }
  return nullptr;
}

}  // namespace gapless::transfer::rdma
