// What the layers above keep in a context or in a lane: one object of each type, made when it is first asked for.
//
// So contexts know nothing of what stands in them, and whatever stands in a context goes with it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace gapless::device::cuda {

class Slots {
 public:
  Slots() = default;
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  /// The T that stands here. Any thread may ask. Throws what making one throws.
  template <class T>
  T& of() {
    Slot& slot = slots_.at(place_of<T>());
    if (void* object = slot.object.load(std::memory_order_acquire)) return *static_cast<T*>(object);
    std::call_once(slot.made, [&slot] {
      slot.owner = std::make_shared<T>();
      slot.object.store(slot.owner.get(), std::memory_order_release);
    });
    return *static_cast<T*>(slot.owner.get());
  }

 private:
  struct Slot {
    std::atomic<void*> object{nullptr};
    std::once_flag made;
    std::shared_ptr<void> owner;
  };
  static constexpr std::size_t most_types = 4;

  template <class T>
  static std::size_t place_of() noexcept {
    static const std::size_t place = next_place.fetch_add(1, std::memory_order_relaxed);
    return place;
  }

  static inline std::atomic<std::size_t> next_place{0};
  std::array<Slot, most_types> slots_;
};

}  // namespace gapless::device::cuda
