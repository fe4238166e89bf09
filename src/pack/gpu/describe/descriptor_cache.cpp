#include "pack/gpu/describe/descriptor_cache.hpp"

#include <cstring>
#include <iterator>
#include <utility>

#include "pack/gpu/describe/form.hpp"

namespace gapless::pack::gpu {

layout::LayoutPointer form_for(const layout::Layout& layout, std::optional<Regime> forced) {
  return forced == Regime::tree ? nullptr : kernel_form(layout, forced == Regime::segments);
}

Descriptor::Descriptor(std::shared_ptr<DescriptorMemory> memory, int device, const layout::Layout& layout,
                       std::optional<Regime> forced)
    : memory_(std::move(memory)), device_(device), form_(form_for(layout, forced)) {
  const Serialised serialised = serialise(described(layout));
  std::memcpy(&root_, serialised.bytes.data(), sizeof root_);
  alignment_bits_ = serialised.alignment_bits;
  size_ = serialised.bytes.size();
  upload_ = memory_->upload(device, serialised.bytes.data(), size_);
}

Descriptor::~Descriptor() {
  if (valid()) memory_->release(device_, upload_, size_);
}

bool Descriptor::follow(void* stream) noexcept {
  if (has_arrived()) return true;
  const Arrival arrival = upload_.arrival == nullptr ? Arrival::arrived : memory_->follow(upload_, stream);
  if (arrival == Arrival::arrived) arrived_.store(true, std::memory_order_relaxed);
  return arrival != Arrival::failed;
}

std::shared_ptr<Descriptor> DescriptorCache::find(const layout::Layout& layout, int device) {
  const std::weak_ptr<const layout::Layout> alive = layout.weak_from_this();
  // A layout that nobody shares may be gone after this call, and could not be told from its successor at the address.
  if (alive.expired()) return make(layout, device);
  {
    std::lock_guard lock(mutex_);
    if (auto known = find_same(layout, device)) return known;
  }
  const std::size_t hash = layout::hash(layout);
  std::shared_ptr<Descriptor> descriptor;
  {
    std::lock_guard lock(mutex_);
    descriptor = find_equal(layout, hash, device);
  }
  if (!descriptor) descriptor = make(layout, device);
  if (descriptor) {
    std::lock_guard lock(mutex_);
    add({&layout, hash, device, alive, descriptor});
  }
  return descriptor;
}

std::shared_ptr<Descriptor> DescriptorCache::make(const layout::Layout& layout, int device) const {
  auto descriptor = std::make_shared<Descriptor>(memory_, device, layout, forced_);
  return descriptor->valid() ? descriptor : nullptr;
}

std::shared_ptr<Descriptor> DescriptorCache::find_same(const layout::Layout& layout, int device) {
  for (auto [it, last] = by_layout_.equal_range(&layout); it != last; ++it) {
    const auto entry = it->second;
    if (entry->device == device && !entry->alive.expired()) {
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->descriptor;
    }
  }
  return nullptr;
}

std::shared_ptr<Descriptor> DescriptorCache::find_equal(const layout::Layout& layout, std::size_t hash,
                                                        int device) const {
  for (auto [it, last] = by_hash_.equal_range(hash); it != last; ++it) {
    const Entry& entry = *it->second;
    const layout::LayoutPointer known = entry.alive.lock();
    if (entry.device == device && known && *known == layout) return entry.descriptor;
  }
  return nullptr;
}

void DescriptorCache::add(Entry entry) {
  bytes_ += entry.descriptor->size();
  entries_.push_front(std::move(entry));
  by_layout_.emplace(entries_.front().layout, entries_.begin());
  by_hash_.emplace(entries_.front().hash, entries_.begin());
  evict();
}

// The newest entry is in use, so it stays.
void DescriptorCache::evict() {
  while (bytes_ > capacity_ && entries_.size() > 1) erase(std::prev(entries_.end()));
  // Few at a time: a program that makes many types must not pay for all of them with each.
  auto entry = std::prev(entries_.end());
  for (int looked_at = 0; looked_at < 4 && entry != entries_.begin(); ++looked_at, --entry) {
    if (entry->alive.expired()) entry = erase(entry);
  }
}

namespace {

template <class Index, class Entries>
void forget(Index& index, const typename Index::key_type& key, Entries entry) {
  for (auto [it, last] = index.equal_range(key); it != last; ++it) {
    if (it->second != entry) continue;
    index.erase(it);
    return;
  }
}

}  // namespace

DescriptorCache::Entries::iterator DescriptorCache::erase(Entries::iterator entry) {
  forget(by_layout_, entry->layout, entry);
  forget(by_hash_, entry->hash, entry);
  bytes_ -= entry->descriptor->size();
  return entries_.erase(entry);
}

void DescriptorCache::hold(const std::shared_ptr<Descriptor>& descriptor) {
  std::lock_guard lock(mutex_);
  if (descriptor->held_) return;
  held_.push_back(descriptor);
  descriptor->held_ = true;
}

std::size_t DescriptorCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t DescriptorCache::entries() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace gapless::pack::gpu
