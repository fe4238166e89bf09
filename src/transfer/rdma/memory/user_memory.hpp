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
  /// Of contiguous GPU memory, which is registered already, and which the CPU does not reach.
  const fabric::Region* region = nullptr;

  layout::Offset size() const noexcept { return static_cast<layout::Offset>(blocks.bytes); }
};

/// The blocks of a layout's repetitions. `facts` are the layout's.
Blocks blocks_of(const layout::Facts& facts, const layout::Layout& layout, layout::Mode outer) noexcept;
/// All of it.
Memory memory_of(const layout::LayoutPointer& layout, const layout::Facts& facts, layout::Mode outer, void* origin);
/// Packed bytes. Throws std::bad_alloc.
Memory packed_memory(std::byte* packed, std::uint64_t bytes);

class UserMemory {
 public:
  /// Throws std::bad_alloc.
  explicit UserMemory(fabric::RegistrationCache& cache) : cache_(cache) { regions_.reserve(1); }
  ~UserMemory() { release(); }
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  /// Registers all blocks, in `most` regions or fewer. False if that is refused; then nothing is held. Memory that is
  /// registered already is never refused, and stays registered.
  bool acquire(const Memory& memory, const fabric::RegistrationCost& cost, std::size_t most, fabric::Use use) noexcept;
  void release() noexcept;
  /// As release(), and the fabric reaches what was acquired alone no more.
  void revoke() noexcept;

  bool is_held() const noexcept { return !regions_.empty(); }
  const std::vector<const fabric::Region*>& regions() const noexcept { return regions_; }
  /// The region that holds a block; null where none does.
  const fabric::Region* find(const std::byte* block, std::size_t bytes) const noexcept;

 private:
  bool acquire_range(const fabric::Range& range, std::size_t most, fabric::Use use);
  bool acquire_blocks(const Memory& memory, const fabric::RegistrationCost& cost, std::size_t most, fabric::Use use);

  fabric::RegistrationCache& cache_;
  std::vector<const fabric::Region*> regions_;
  std::vector<fabric::Range> groups_, blocks_;
};

}  // namespace gapless::transfer::rdma
