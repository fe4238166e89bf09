// The program's own memory, registered for one message: as few regions as optimistic group registration finds.
#pragma once

#include <vector>

#include "fabric/remote/group.hpp"
#include "fabric/remote/registration_cache.hpp"
#include "layout/algebra/cursor.hpp"
#include "layout/algebra/facts.hpp"
#include "transfer/rdma/information.hpp"

namespace gapless::transfer::rdma {

/// One side of a message: the first `blocks.bytes` packed bytes of a layout's repetitions.
struct Memory {
  layout::LayoutPointer layout;
  layout::Mode outer{1, 0};  ///< count and extent
  std::byte* origin = nullptr;
  Blocks blocks;
  /// The region of contiguous GPU memory, which is registered already, and which the CPU does not reach; null for host
  /// memory.
  const fabric::Region* region = nullptr;

  layout::Offset size() const noexcept { return static_cast<layout::Offset>(blocks.bytes); }
};

/// The blocks of a layout's repetitions. `facts` are the layout's.
Blocks blocks_of(const layout::Facts& facts, const layout::Layout& layout, layout::Mode outer) noexcept;
/// The memory of all repetitions of a layout.
Memory memory_of(const layout::LayoutPointer& layout, const layout::Facts& facts, layout::Mode outer, void* origin);
/// The memory of packed bytes. Throws std::bad_alloc.
Memory packed_memory(std::byte* packed, std::uint64_t bytes);

class UserMemory {
 public:
  /// Throws std::bad_alloc.
  explicit UserMemory(fabric::RegistrationCache& cache) : cache_(cache) { regions_.reserve(1); }
  ~UserMemory() { release(); }
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  /// Registers all blocks, in at most `most` regions, and holds the regions. False, with nothing held, where that is
  /// not possible. Memory that is registered already is never refused, and stays registered.
  bool acquire(const Memory& memory, const fabric::RegistrationCost& cost, std::size_t most, fabric::Use use) noexcept;
  void release() noexcept;
  /// As release(), and ends the registrations of memory that was acquired with fabric::Use::alone.
  void revoke() noexcept;

  bool is_held() const noexcept { return !regions_.empty(); }
  const std::vector<const fabric::Region*>& regions() const noexcept { return regions_; }
  /// The region that holds a block; null where none does.
  const fabric::Region* find(const std::byte* block, std::size_t bytes) const noexcept;

 private:
  void trim() noexcept;
  bool acquire_range(const fabric::Range& range, std::size_t most, fabric::Use use);
  bool acquire_blocks(const Memory& memory, const fabric::RegistrationCost& cost, std::size_t most, fabric::Use use);

  fabric::RegistrationCache& cache_;
  std::vector<const fabric::Region*> regions_;
  std::vector<fabric::Range> groups_, blocks_;
};

}  // namespace gapless::transfer::rdma
