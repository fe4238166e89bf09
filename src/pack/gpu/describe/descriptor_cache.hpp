// Serialised layouts in GPU memory, uploaded once and shared by all threads.
//
// An entry is found by the identity of its layout, which it keeps honest with a weak reference: an address alone could
// belong to another layout by now. A layout that is not known yet takes the descriptor of an equal one. The cache is
// bounded, and drops what belonged to layouts that are gone; what it drops is freed when the last user lets go.
// Descriptors used in a stream capture are held for ever, because the graph may be launched at any later time.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "pack/gpu/describe/serialise.hpp"
#include "pack/gpu/regimes/regime.hpp"
#include "pack/gpu/regimes/tree.hpp"

namespace gapless::pack::gpu {

/// The form in which kernels get a layout where that regime is forced; nullptr if they get it as it is. Throws
/// std::bad_alloc.
layout::LayoutPointer form_for(const layout::Layout& layout, std::optional<Regime> forced);

/// Bytes on their way to GPU memory.
struct Upload {
  void* bytes = nullptr;    ///< null when it could not be made
  void* arrival = nullptr;  ///< what follow() waits for; null if they are there
};

enum class Arrival : std::uint8_t { arrived, followed, failed };

/// Where descriptors live. Thread-safe.
class DescriptorMemory {
 public:
  virtual ~DescriptorMemory() = default;
  /// Starts to copy the bytes, which are not needed any more on return, to memory of `device`.
  virtual Upload upload(int device, const void* bytes, std::size_t count) noexcept = 0;
  /// `arrived`: every stream finds the bytes. `followed`: what is issued to `stream` from now on does.
  virtual Arrival follow(const Upload&, void* /*stream*/) noexcept { return Arrival::arrived; }
  /// Frees them once no kernel uses them any more.
  virtual void release(int device, const Upload& upload, std::size_t count) noexcept = 0;
};

class Descriptor {
 public:
  /// forced: the regime it is for; none: the best.
  Descriptor(std::shared_ptr<DescriptorMemory> memory, int device, const layout::Layout& layout,
             std::optional<Regime> forced);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool valid() const noexcept { return upload_.bytes != nullptr; }
  const std::byte* bytes() const noexcept { return static_cast<const std::byte*>(upload_.bytes); }
  /// Lets what is issued to `stream` from now on use the bytes; false if that failed.
  bool follow(void* stream) noexcept;
  /// Has a follow() found that every stream can use them?
  bool has_arrived() const noexcept { return arrived_.load(std::memory_order_relaxed); }
  /// What is described, given the layout that it was made for.
  const layout::Layout& described(const layout::Layout& original) const noexcept { return form_ ? *form_ : original; }
  AlignmentBits alignment_bits() const noexcept { return alignment_bits_; }
  std::size_t size() const noexcept { return size_; }
  /// The root, as the host sees it.
  const TreeNode& root() const noexcept { return root_; }
  Table table(const TreeTable& of_root) const noexcept { return {bytes() + of_root.position, of_root.narrow != 0}; }
  RunTable runs(const TreeRuns& of_root) const noexcept {
    return {bytes() + of_root.position, of_root.narrow != 0, of_root.unit_shift};
  }

 private:
  std::shared_ptr<DescriptorMemory> memory_;
  int device_;
  Upload upload_;
  std::atomic<bool> arrived_{false};
  layout::LayoutPointer form_;  ///< null: as it was given
  AlignmentBits alignment_bits_;
  TreeNode root_{};
  std::size_t size_ = 0;
  friend class DescriptorCache;
  bool held_ = false;  // guarded by the cache
};

class DescriptorCache {
 public:
  DescriptorCache(std::shared_ptr<DescriptorMemory> memory, std::size_t capacity_bytes,
                  std::optional<Regime> forced = forced_regime())
      : memory_(std::move(memory)), capacity_(capacity_bytes), forced_(forced) {}

  /// The regime that descriptors are made for; none: the one that is best.
  std::optional<Regime> forced() const noexcept { return forced_; }

  /// The layout's descriptor on `device`, made if need be; nullptr when there is no memory for it.
  std::shared_ptr<Descriptor> find(const layout::Layout& layout, int device);

  /// Holds the descriptor until the process ends.
  void hold(const std::shared_ptr<Descriptor>& descriptor);

  std::size_t bytes() const;
  std::size_t entries() const;

 private:
  /// One for each layout that is alive, so that each counts as a user of a descriptor that several share.
  struct Entry {
    const layout::Layout* layout;
    std::size_t hash;
    int device;
    std::weak_ptr<const layout::Layout> alive;
    std::shared_ptr<Descriptor> descriptor;
  };
  using Entries = std::list<Entry>;  // most recently used first

  /// nullptr when there is no memory for it.
  std::shared_ptr<Descriptor> make(const layout::Layout& layout, int device) const;
  std::shared_ptr<Descriptor> find_same(const layout::Layout& layout, int device);
  std::shared_ptr<Descriptor> find_equal(const layout::Layout& layout, std::size_t hash, int device) const;
  void add(Entry entry);
  void evict();
  Entries::iterator erase(Entries::iterator entry);

  std::shared_ptr<DescriptorMemory> memory_;
  std::size_t capacity_;
  std::optional<Regime> forced_;
  mutable std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::vector<std::shared_ptr<Descriptor>> held_;
  Entries entries_;
  std::unordered_multimap<const layout::Layout*, Entries::iterator> by_layout_;
  std::unordered_multimap<std::size_t, Entries::iterator> by_hash_;
};

}  // namespace gapless::pack::gpu
