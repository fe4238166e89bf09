#include "pack/cuda/descriptor_cache.hpp"

#include <cstring>

#include "pack/cuda/form.hpp"

namespace gapless::pack::cuda {

namespace {

layout::LayoutPointer form_for(const layout::Layout& layout, std::optional<Regime> forced) {
  return forced == Regime::tree ? nullptr : kernel_form(layout, forced == Regime::segments);
}

}  // namespace

Descriptor::Descriptor(std::shared_ptr<DescriptorMemory> memory, int device, const layout::Layout& layout,
                       std::optional<Regime> forced)
    : memory_(std::move(memory)), device_(device), form_(form_for(layout, forced)) {
  const Serialised serialised = serialise(described(layout));
  std::memcpy(&root_, serialised.bytes.data(), sizeof root_);
  alignment_bits_ = serialised.alignment_bits;
  size_ = serialised.bytes.size();
  bytes_ = memory_->upload(device, serialised.bytes.data(), size_);
}

Descriptor::~Descriptor() {
  if (bytes_ != nullptr) memory_->release(device_, bytes_);
}

std::shared_ptr<Descriptor> DescriptorCache::find(const layout::Layout& layout, int device) {
  const std::weak_ptr<const layout::Layout> alive = layout.weak_from_this();
  const bool shared = !alive.expired();
  if (shared) {
    std::lock_guard lock(mutex_);
    for (auto [it, last] = by_layout_.equal_range(&layout); it != last; ++it) {
      const auto entry = it->second;
      if (entry->device == device && !entry->alive.expired()) {
        entries_.splice(entries_.begin(), entries_, entry);
        return entry->descriptor;
      }
    }
  }
  auto descriptor = std::make_shared<Descriptor>(memory_, device, layout, forced_);
  if (!descriptor->valid()) return nullptr;
  if (shared) {
    std::lock_guard lock(mutex_);
    entries_.push_front({&layout, device, alive, descriptor});
    by_layout_.emplace(&layout, entries_.begin());
    bytes_ += descriptor->size();
    evict();
  }
  return descriptor;
}

void DescriptorCache::evict() {
  for (auto entry = entries_.end(); bytes_ > capacity_ && entry != entries_.begin();) {
    --entry;
    if (entry == entries_.begin()) break;  // the newest is in use
    entry = erase(entry);
  }
}

DescriptorCache::Entries::iterator DescriptorCache::erase(Entries::iterator entry) {
  for (auto [it, last] = by_layout_.equal_range(entry->layout); it != last; ++it) {
    if (it->second == entry) {
      by_layout_.erase(it);
      break;
    }
  }
  bytes_ -= entry->descriptor->size();
  return entries_.erase(entry);
}

void DescriptorCache::keep(const std::shared_ptr<Descriptor>& descriptor) {
  std::lock_guard lock(mutex_);
  if (descriptor->kept_) return;
  kept_.push_back(descriptor);
  descriptor->kept_ = true;
}

std::size_t DescriptorCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t DescriptorCache::entries() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace gapless::pack::cuda
